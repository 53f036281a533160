/** Controls for single values. An empty control leaves the key out, so that its default holds. */

import { useId, useState } from "react";

import type { Json } from "../../api/types";
import { Button } from "../../components/Button";
import { CodeEditor } from "../../components/CodeEditor";
import { Field } from "../../components/Field";
import { same } from "../../draft/diff";
import { texts } from "../../draft/document";
import { declarationYaml, parseYaml } from "../../draft/yaml";
import { useForm } from "./context";
import { numberOf, scalarOf, useTyped } from "./typed";

type Shared = { label: string; problem: string | null; hint?: string; value: Json | undefined; set: (value: Json | undefined) => void; testId?: string };

const shown = (value: Json | undefined): string => (value === undefined || value === null ? "" : String(value));
const fallbackText = (fallback: Json | undefined): string => (fallback === undefined || fallback === null || typeof fallback === "object" ? "" : String(fallback));

export function TextControl({ label, problem, hint, value, set, testId, suggestions }: Shared & { suggestions: string[] }) {
  const { readOnly } = useForm();
  const list = useId();
  return (
    <Field label={label} problem={problem} hint={hint}>
      {(id, described) => (
        <>
          <input id={id} type="text" aria-describedby={described} list={suggestions.length ? list : undefined} value={shown(value)} disabled={readOnly} onChange={(event) => set(event.target.value || undefined)} data-testid={testId} />
          <Suggestions id={list} values={suggestions} />
        </>
      )}
    </Field>
  );
}

function Suggestions({ id, values }: { id: string; values: string[] }) {
  if (!values.length) return null;
  return (
    <datalist id={id}>
      {[...new Set(values)].map((value) => (
        <option key={value} value={value} />
      ))}
    </datalist>
  );
}

/** A number, or text such as `10 minutes`. */
export function ScalarControl({ label, problem, hint, value, set, testId, fallback }: Shared & { fallback: Json | undefined }) {
  const { readOnly } = useForm();
  const { text, change, leave } = useTyped(value, scalarOf, set);
  return (
    <Field label={label} problem={problem} hint={hint}>
      {(id, described) => <input id={id} type="text" aria-describedby={described} placeholder={fallbackText(fallback)} value={text} disabled={readOnly} onChange={(event) => change(event.target.value)} onBlur={leave} data-testid={testId} />}
    </Field>
  );
}

export function NumberControl({ label, problem, hint, value, set, testId, fallback }: Shared & { fallback: Json | undefined }) {
  const { readOnly } = useForm();
  const { text, change, leave } = useTyped(value, numberOf, set);
  return (
    <Field label={label} problem={problem} hint={hint}>
      {(id, described) => (
        <input id={id} type="number" step="any" aria-describedby={described} placeholder={fallbackText(fallback)} value={text} disabled={readOnly} onChange={(event) => change(event.target.value)} onBlur={leave} data-testid={testId} />
      )}
    </Field>
  );
}

export function SelectControl({ label, problem, hint, value, set, testId, values, fallback, parse }: Shared & { values: string[]; fallback: Json | undefined; parse: (text: string) => Json }) {
  const { readOnly } = useForm();
  const standard = fallbackText(fallback);
  return (
    <Field label={label} problem={problem} hint={hint}>
      {(id, described) => (
        <select id={id} aria-describedby={described} value={shown(value)} disabled={readOnly} onChange={(event) => set(event.target.value === "" ? undefined : parse(event.target.value))} data-testid={testId}>
          <option value="">{standard ? `${standard} (default)` : "none"}</option>
          {values.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** A list of words, as chips. */
export function TextsControl({ label, problem, hint, value, set, testId, suggestions }: Shared & { suggestions: string[] }) {
  const { readOnly } = useForm();
  const [typed, setTyped] = useState("");
  const list = useId();
  const words = texts(value);
  const add = () => {
    const word = typed.trim();
    if (word && !words.includes(word)) set([...words, word]);
    setTyped("");
  };
  const drop = (word: string) => {
    const rest = words.filter((each) => each !== word);
    set(rest.length ? rest : undefined);
  };
  return (
    <Field label={label} problem={problem} hint={hint}>
      {(id, described) => (
        <div className="chips">
          {words.map((word) => (
            <span key={word} className="chip mono">
              {word}
              <Button look="quiet" icon="close" aria-label={`Remove ${word}`} disabled={readOnly} onClick={() => drop(word)} />
            </span>
          ))}
          <input
            id={id}
            type="text"
            aria-describedby={described}
            list={suggestions.length ? list : undefined}
            placeholder="add"
            value={typed}
            disabled={readOnly}
            onChange={(event) => setTyped(event.target.value)}
            onBlur={add}
            onKeyDown={(event) => {
              if (event.key !== "Enter" && event.key !== ",") return;
              event.preventDefault();
              add();
            }}
            data-testid={testId}
          />
          <Suggestions id={list} values={suggestions.filter((each) => !words.includes(each))} />
        </div>
      )}
    </Field>
  );
}

/** The arc that is read. */
export function ArcControl({ label, problem, hint, value, set }: Shared) {
  const { arcs, readOnly } = useForm();
  const now = shown(value);
  return (
    <Field label={label} problem={problem} hint={hint}>
      {(id, described) => (
        <select id={id} className="mono" aria-describedby={described} value={now} disabled={readOnly} onChange={(event) => set(event.target.value || undefined)} data-testid={`field-${label}`}>
          <option value="">not connected</option>
          {[...new Set([...(now ? [now] : []), ...arcs])].map((arc) => (
            <option key={arc} value={arc}>
              {arc}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** Several arcs, in their order. */
export function InputsControl({ label, problem, hint, value, set }: Shared) {
  const { arcs, readOnly } = useForm();
  const inputs = texts(value);
  const put = (index: number, arc: string) => set(inputs.map((each, at) => (at === index ? arc : each)));
  return (
    <Field label={label} problem={problem} hint={hint}>
      {(id) => (
        <div className="inputs">
          {inputs.map((arc, index) => (
            <div key={index} className="inputs-row">
              <select id={index ? undefined : id} className="mono" aria-label={`input ${index + 1}`} value={arc} disabled={readOnly} onChange={(event) => put(index, event.target.value)}>
                <option value="">not connected</option>
                {[...new Set([...(arc ? [arc] : []), ...arcs])].map((each) => (
                  <option key={each} value={each}>
                    {each}
                  </option>
                ))}
              </select>
              <Button look="quiet" icon="close" aria-label={`Remove input ${index + 1}`} disabled={readOnly} onClick={() => set(inputs.filter((_, at) => at !== index))} />
            </div>
          ))}
          <Button look="quiet" icon="add" disabled={readOnly} onClick={() => set([...inputs, ""])}>
            Add an input
          </Button>
        </div>
      )}
    </Field>
  );
}

/** What has no form of its own, as YAML. */
export function YamlControl({ label, problem, hint, value, set, testId }: Shared) {
  const { readOnly } = useForm();
  const written = value === undefined ? "" : declarationYaml(value).trimEnd();
  const [text, setText] = useState(written);
  const parsed = parseYaml(text);
  const mine = "error" in parsed || same(parsed.value, value ?? null);
  const change = (typed: string) => {
    setText(typed);
    const found = parseYaml(typed);
    if (!("error" in found)) set(found.value === null ? undefined : found.value);
  };
  return (
    <Field label={label} problem={"error" in parsed ? parsed.error : problem} hint={hint}>
      {() => <CodeEditor label={label || "value"} language="yaml" value={mine ? text : written} onChange={change} readOnly={readOnly} testId={testId} />}
    </Field>
  );
}
