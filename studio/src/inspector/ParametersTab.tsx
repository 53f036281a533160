import { useState } from "react";

import { asObject, declared, type Ref } from "../draft/document";
import { put } from "../draft/edits";
import { useDraft } from "../store/draft";
import { useSession } from "../store/session";
import { Context, yamlWords } from "./form/context";
import { ABOUT, FormFields } from "./form/FormFields";
import { keysOf, schemaFor } from "./form/schema";
import { GroupMembers } from "./GroupMembers";
import { useFormContext } from "./useFormContext";
import { YamlDeclaration } from "./YamlDeclaration";
import { FormOrYaml, type Mode } from "./FormOrYaml";

/** The declaration as a form or as YAML; both are views of the same draft. */
export function ParametersTab({ target }: { target: Ref }) {
  const [mode, setMode] = useState<Mode>("form");
  const context = useFormContext(target);
  const draft = useDraft((state) => state.draft);
  const edit = useDraft((state) => state.edit);
  const root = useSession((state) => state.schema);
  const value = declared(draft, target);
  const keys = keysOf(root, schemaFor(root, target, draft, asObject(target.section, value)));
  const words = yamlWords(keys, context.arcs, keys.has("sql") ? context.sqlWords : context.expressionWords);
  if (value === undefined) return <p className="muted">It is not in the draft any more.</p>;
  const object = asObject(target.section, value);
  const schema = schemaFor(root, target, draft, object);
  const about = (key: string) => ABOUT.includes(key);
  const general = context.problems.filter((problem) => (problem.path?.length ?? 0) <= 2);
  return (
    <Context value={context}>
      <FormOrYaml mode={mode} onChange={setMode} />
      {general.map((problem, index) => (
        <div key={index} className="notice bad" role="alert">
          <span>
            <strong>{problem.code}</strong> {problem.detail} {problem.hint}
          </span>
        </div>
      ))}
      {mode === "yaml" ? (
        <YamlDeclaration
          key={`${target.section} ${target.name}`}
          label={`YAML of ${target.name}`}
          value={value}
          problems={context.problems}
          skip={2}
          readOnly={context.readOnly}
          completions={words}
          onChange={(to) => edit((document) => put(document, target, to as typeof value), { merge: `yaml ${target.section} ${target.name}` })}
        />
      ) : (
        <div className="form" key={`${target.section} ${target.name}`}>
          {target.section === "groups" && <GroupMembers name={target.name} />}
          <FormFields schema={schema} value={object} path={[]} only={(key) => !about(key) && key !== "qos"} />
          {target.section === "queries" && object.values === undefined && !context.readOnly && (
            <p className="field-hint">
              A family has <code>values</code> and a <code>key</code>: one query for each row.{" "}
              <button type="button" className="link" onClick={() => edit((document) => put(document, target, { ...object, values: [{ id: "first" }], key: "id" }))}>
                Make it a family
              </button>
            </p>
          )}
          <details className="form-about">
            <summary>About and change</summary>
            <FormFields schema={schema} value={object} path={[]} only={about} />
          </details>
        </div>
      )}
    </Context>
  );
}
