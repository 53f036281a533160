import { useState } from "react";

import type { Json } from "../../api/types";
import { Button } from "../../components/Button";
import { CodeEditor } from "../../components/CodeEditor";
import type { Path } from "../../draft/edits";
import { renameKey } from "../../draft/edits";
import { saying } from "../../draft/saying";
import { problemAt, useForm } from "./context";
import { YamlControl } from "./controls";
import { asSchema, type Schema } from "./schema";

const TYPES = ["string", "int", "bigint", "double", "boolean", "timestamp", "date", "decimal(10,2)", "binary"];
const ARE_EXPRESSIONS = new Set(["compute", "routes", "report"]);

type Props = { label: string; value: Json | undefined; path: Path; of: Schema; problem: string | null };

/** Names with a value each, such as computed fields, routes, or a schema. */
export function MapControl({ label, value, path, problem }: Props) {
  const form = useForm();
  const map = asSchema(value);
  const key = String(path.at(-1));
  const add = () => {
    let name = key === "schema" ? "field" : key === "routes" ? "route" : "value";
    for (let n = 2; name in map; n += 1) name = `${name.replace(/\d+$/, "")}${n}`;
    form.set(path, { ...map, [name]: key === "schema" ? "string" : key === "routes" ? "true" : "" });
  };
  return (
    <fieldset className="form-object form-map">
      <legend>
        <span className="legend-name">{label}</span>
        <Button look="quiet" icon="add" aria-label={`Add to ${label}`} disabled={form.readOnly} onClick={add} data-testid={`add-${path.join("-")}`} />
      </legend>
      {Object.entries(map).map(([name, each], index) => (
        <MapRow key={index} name={name} value={each} map={map} path={path} isType={key === "schema" || key === "returns"} isExpression={ARE_EXPRESSIONS.has(key)} />
      ))}
      {problem && !Object.keys(map).some((name) => problemAt(form.problems, [...path, name])) && <div className="field-problem">{problem}</div>}
    </fieldset>
  );
}

type RowProps = { name: string; value: Json; map: { [key: string]: Json }; path: Path; isType: boolean; isExpression: boolean };

function MapRow({ name, value, map, path, isType, isExpression }: RowProps) {
  const form = useForm();
  const [typed, setTyped] = useState<string | null>(null);
  const problem = problemAt(form.problems, [...path, name]);
  const commit = () => {
    if (typed !== null && typed.trim() && typed !== name && !(typed in map)) form.set(path, renameKey(map, name, typed.trim()));
    setTyped(null);
  };
  return (
    <div className="map-row">
      <input
        type="text"
        className="mono"
        aria-label={`name ${name}`}
        value={typed ?? name}
        disabled={form.readOnly}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={commit}
        onKeyDown={(event) => event.key === "Enter" && commit()}
      />
      <div className="map-value">
        {typeof value === "object" && value !== null ? (
          <YamlControl label="" problem={null} value={value} set={(to) => form.set([...path, name], to)} testId={`field-${[...path, name].join("-")}`} />
        ) : isExpression ? (
          <CodeEditor label={`value of ${name}`} language="expression" value={String(value ?? "")} onChange={(text) => form.set([...path, name], text)} completions={form.expressionWords} readOnly={form.readOnly} testId={`field-${[...path, name].join("-")}`} />
        ) : (
          <input type="text" className="mono" aria-label={`value of ${name}`} list={isType ? "spark-types" : undefined} value={String(value ?? "")} disabled={form.readOnly} onChange={(event) => form.set([...path, name], event.target.value)} data-testid={`field-${[...path, name].join("-")}`} />
        )}
      </div>
      <Button look="quiet" icon="close" aria-label={`Remove ${name}`} disabled={form.readOnly} onClick={() => form.set([...path, name], undefined)} />
      {problem && <div className="field-problem">{saying(problem)}</div>}
      {isType && (
        <datalist id="spark-types">
          {TYPES.map((type) => (
            <option key={type} value={type} />
          ))}
        </datalist>
      )}
    </div>
  );
}
