import { useMemo, useState } from "react";

import type { Json, Problem } from "../api/types";
import { CodeEditor, type Completion } from "../components/CodeEditor";
import { same } from "../draft/diff";
import { saying } from "../draft/saying";
import { declarationYaml, networkYaml, parseYaml, rangeOf } from "../draft/yaml";
import type { NetworkDocument } from "../api/types";

type Props = {
  label: string;
  value: unknown;
  problems: Problem[];
  /** How many keys of a problem's path lead to this value. */
  skip: number;
  readOnly: boolean;
  completions: Completion[];
  onChange: (value: Json) => void;
};

/** A value as YAML, in step with the draft: text that parses is the draft, other changes replace the text. */
export function YamlDeclaration({ label, value, problems, skip, readOnly, completions, onChange }: Props) {
  const written = useMemo(() => (skip ? declarationYaml(value) : networkYaml(value as NetworkDocument)), [value, skip]);
  const [text, setText] = useState(written);
  const parsed = useMemo(() => parseYaml(text), [text]);
  const shown = "error" in parsed || same(parsed.value, value) ? text : written;
  const diagnostics = useMemo(() => {
    if ("error" in parsed) {
      const from = Math.min(parsed.from, Math.max(shown.length - 1, 0));
      return [{ from, to: Math.max(from, Math.min(parsed.to, shown.length)), severity: "error" as const, message: parsed.error }];
    }
    return problems.map((problem) => {
      const [from, to] = rangeOf(shown, (problem.path ?? []).slice(skip));
      return { from, to: Math.max(from, Math.min(to, shown.length)), severity: "error" as const, message: saying(problem) ?? "" };
    });
  }, [parsed, problems, shown, skip]);
  const change = (typed: string) => {
    setText(typed);
    const found = parseYaml(typed);
    if (!("error" in found) && found.value !== null) onChange(found.value);
  };
  return (
    <div className="yaml-declaration">
      <CodeEditor label={label} language="yaml" value={shown} onChange={change} completions={completions} diagnostics={diagnostics} readOnly={readOnly} testId="yaml" />
      {"error" in parsed && (
        <div className="field-problem" role="alert">
          line {parsed.line}: {parsed.error}
        </div>
      )}
    </div>
  );
}
