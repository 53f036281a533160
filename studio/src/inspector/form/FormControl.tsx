import { useId } from "react";

import type { Json, Problem } from "../../api/types";
import { Button } from "../../components/Button";
import { CodeEditor } from "../../components/CodeEditor";
import { Field } from "../../components/Field";
import type { Path } from "../../draft/edits";
import { saying } from "../../draft/saying";
import { useForm } from "./context";
import { FormFields } from "./FormFields";
import { MapControl } from "./MapControl";
import { asSchema, resolve, shapeOf, variantOf, type Schema, type Shape } from "./schema";
import { scalarOf, useTyped } from "./typed";
import { ArcControl, InputsControl, NumberControl, ScalarControl, SelectControl, TextControl, TextsControl, YamlControl } from "./controls";

type Props = { name: string; schema: Schema; shape: Shape; value: Json | undefined; path: Path; required: boolean; problem?: Problem };

const EXPRESSIONS = new Set(["where", "match", "advance"]);
const FIELD_LISTS = new Set(["by", "keys", "keep", "key"]);

function isExpression(section: string, path: Path): boolean {
  const key = String(path.at(-1));
  return section === "boxes" && (EXPRESSIONS.has(key) || (key === "on" && path.length === 1));
}

/** One key of a declaration with the control that its schema asks for. */
export function FormControl(props: Props) {
  const { name, shape, value, path, problem, schema } = props;
  const form = useForm();
  const key = String(path.at(-1));
  const label = name.replaceAll("_", " ");
  const hint = typeof schema.description === "string" && value === undefined ? schema.description.split("\n")[0] : undefined;
  const shared = { label, problem: saying(problem), hint };
  const set = (to: Json | undefined) => form.set(path, to);
  if (path.length === 1 && (key === "input" || key === "from" || (key === "on" && form.section === "connection_points")))
    return <ArcControl {...shared} value={value} set={set} />;
  if (path.length === 1 && key === "inputs" && (Array.isArray(value) || value === undefined)) return <InputsControl {...shared} value={value} set={set} />;
  if (key === "sql")
    return (
      <Field {...shared}>
        {() => <CodeEditor label={label} language="sql" value={typeof value === "string" ? value : ""} onChange={set} completions={form.sqlWords} readOnly={form.readOnly} testId="field-sql" />}
      </Field>
    );
  if (isExpression(form.section, path) && (shape.kind === "text" || shape.kind === "scalar"))
    return (
      <Field {...shared}>{() => <ExpressionControl label={label} value={value} set={set} parse={shape.kind === "scalar" ? scalarOf : textOf} testId={`field-${path.join("-")}`} />}</Field>
    );
  return <ShapeControl {...props} label={label} hint={hint} set={set} fields={FIELD_LISTS.has(key) || (key === "on" && path.length > 1)} />;
}

const textOf = (text: string): Json | undefined => text || undefined;

type ExpressionProps = { label: string; value: Json | undefined; set: (value: Json | undefined) => void; parse: (text: string) => Json | undefined; testId: string };

function ExpressionControl({ label, value, set, parse, testId }: ExpressionProps) {
  const form = useForm();
  const { text, change } = useTyped(value, parse, set);
  return <CodeEditor label={label} language="expression" value={text} onChange={change} completions={form.expressionWords} readOnly={form.readOnly} testId={testId} />;
}

type ShapeProps = Props & { label: string; hint?: string; set: (value: Json | undefined) => void; fields: boolean };

function ShapeControl({ shape, value, path, required, problem, schema, label, hint, set, fields }: ShapeProps) {
  const form = useForm();
  const shared = { label, problem: saying(problem), hint, value, set, testId: `field-${path.join("-")}` };
  switch (shape.kind) {
    case "boolean":
      return <SelectControl {...shared} values={["true", "false"]} fallback={schema.default} parse={(text) => text === "true"} />;
    case "enum":
      return <SelectControl {...shared} values={shape.values} fallback={schema.default} parse={(text) => text} />;
    case "number":
      return <NumberControl {...shared} fallback={schema.default} />;
    case "scalar":
      return <ScalarControl {...shared} fallback={schema.default} />;
    case "text":
      return <TextControl {...shared} suggestions={label === "table" ? form.tables : fields ? form.fields.map((field) => field.name) : []} />;
    case "texts":
      return <TextsControl {...shared} suggestions={fields ? form.fields.map((field) => field.name.replace(/^(left|right)\./, "")) : []} />;
    case "map":
      return <MapControl label={label} value={value} path={path} of={shape.of} problem={saying(problem)} />;
    case "object":
      return <ObjectControl label={label} schema={shape.schema} value={value} path={path} required={required} set={set} />;
    case "choice":
      return <ChoiceControl {...shared} variants={shape.variants} path={path} required={required} />;
    case "yaml":
      return <YamlControl {...shared} />;
  }
}

type ObjectProps = { label: string; schema: Schema; value: Json | undefined; path: Path; required: boolean; set: (value: Json | undefined) => void };

/** Keys below a key, in a frame; an optional one is there or not. */
function ObjectControl({ label, schema, value, path, required, set }: ObjectProps) {
  const { readOnly } = useForm();
  const there = value !== undefined && value !== null;
  return (
    <fieldset className="form-object">
      <legend>
        <span className="legend-name">{label}</span>
        {!required && (
          <Button look="quiet" icon={there ? "close" : "add"} aria-label={there ? `Remove ${label}` : `Add ${label}`} disabled={readOnly} onClick={() => set(there ? undefined : {})} />
        )}
      </legend>
      {(there || required) && <FormFields schema={schema} value={asSchema(value)} path={path} />}
    </fieldset>
  );
}

type ChoiceProps = { label: string; problem: string | null; hint?: string; value: Json | undefined; set: (value: Json | undefined) => void; variants: { label: string; schema: Schema }[]; path: Path; required: boolean; testId: string };

function emptyOf(schema: Schema): Json {
  if (schema.const !== undefined) return schema.const as Json;
  return schema.type === "array" ? [] : schema.type === "object" || schema.properties ? {} : "";
}

/** A value that may have several forms: first which, then its control. */
function ChoiceControl({ label, problem, value, set, variants, path, required }: ChoiceProps) {
  const { root, readOnly } = useForm();
  const id = useId();
  const there = value !== undefined && value !== null;
  const at = there ? variantOf(variants, value) : -1;
  const chosen = variants[at];
  const schema = chosen ? resolve(root, chosen.schema) : null;
  const fixed = schema?.const !== undefined;
  return (
    <fieldset className="form-object form-choice">
      <legend>
        <label htmlFor={id}>{label}</label>
        <select id={id} value={at} disabled={readOnly} onChange={(event) => set(Number(event.target.value) < 0 ? undefined : emptyOf(variants[Number(event.target.value)]?.schema ?? {}))}>
          <option value={-1}>{required ? "choose" : "none"}</option>
          {variants.map((variant, index) => (
            <option key={index} value={index}>
              {variant.label}
            </option>
          ))}
        </select>
      </legend>
      {schema && !fixed && <FormControl name={label} schema={schema} shape={shapeOf(root, schema)} value={value} path={path} required />}
      {problem && <div className="field-problem">{problem}</div>}
    </fieldset>
  );
}
