import { useState } from "react";

import type { NetworkDocument } from "../api/types";
import { Field } from "../components/Field";
import { useDraft } from "../store/draft";
import { useSession } from "../store/session";
import { Context, yamlWords } from "./form/context";
import { FormFields } from "./form/FormFields";
import { asSchema, keysOf, resolve, type Schema } from "./form/schema";
import { FormOrYaml, type Mode } from "./FormOrYaml";
import { useFormContext } from "./useFormContext";
import { YamlDeclaration } from "./YamlDeclaration";

/** With nothing selected: the network itself, its engine options, and all of it as YAML. */
export function NetworkForm() {
  const [mode, setMode] = useState<Mode>("form");
  const context = useFormContext("engine");
  const draft = useDraft((state) => state.draft);
  const report = useDraft((state) => state.report);
  const edit = useDraft((state) => state.edit);
  const root = useSession((state) => state.schema);
  const engine: Schema = resolve(root, asSchema(asSchema(root).properties).engine);
  const problems = report?.problems ?? [];
  return (
    <Context value={{ ...context, problems: problems.filter((problem) => problem.path?.[0] === "engine").map((problem) => ({ ...problem, path: ["engine", "", ...(problem.path ?? []).slice(1)] })) }}>
      <FormOrYaml mode={mode} onChange={setMode} />
      {mode === "yaml" ? (
        <YamlDeclaration
          label="YAML of the network"
          value={draft}
          problems={problems}
          skip={0}
          readOnly={context.readOnly}
          completions={yamlWords(keysOf(root, root), [], context.sqlWords)}
          onChange={(value) => {
            if (typeof value === "object" && value && !Array.isArray(value) && typeof value.network === "string") edit(() => value as NetworkDocument, { merge: "yaml network" });
          }}
        />
      ) : (
        <div className="form">
          <Field label="network" hint="The name belongs to the state directory: it is chosen when the network is first served.">
            {(id, described) => <input id={id} type="text" aria-describedby={described} value={draft.network} readOnly />}
          </Field>
          <details className="form-about" open>
            <summary>Engine</summary>
            <FormFields schema={engine} value={draft.engine ?? {}} path={[]} />
          </details>
        </div>
      )}
    </Context>
  );
}
