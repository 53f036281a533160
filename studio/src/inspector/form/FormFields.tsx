import type { Json } from "../../api/types";
import type { Path } from "../../draft/edits";
import { problemAt, useForm } from "./context";
import { asSchema, shapeOf, type Schema } from "./schema";
import { FormControl } from "./FormControl";

/** Keys that stand in the fold at the end of the form. */
export const ABOUT = ["description", "tags", "on_change"];
const HIDDEN = new Set(["box", "state", "members"]);

type Props = { schema: Schema; value: { [key: string]: Json | undefined }; path: Path; only?: (key: string) => boolean };

/** The controls of an object's keys; keys in use and required ones first. */
export function FormFields({ schema, value, path, only }: Props) {
  const { root, problems } = useForm();
  const required = Array.isArray(schema.required) ? schema.required : [];
  const keys = Object.keys(asSchema(schema.properties)).filter((key) => !HIDDEN.has(key) && (!only || only(key)));
  const rank = (key: string) => (required.includes(key) ? 0 : value[key] !== undefined ? 1 : 2);
  keys.sort((a, b) => rank(a) - rank(b));
  // A key that the schema does not know is shown, so that it can be removed.
  const unknown = Object.keys(value).filter((key) => !(key in asSchema(schema.properties)) && value[key] !== undefined && (!only || only(key)));
  return (
    <>
      {keys.map((key) => (
        <FormControl
          key={key}
          name={key}
          schema={asSchema(asSchema(schema.properties)[key])}
          shape={shapeOf(root, asSchema(schema.properties)[key])}
          value={value[key]}
          path={[...path, key]}
          required={required.includes(key)}
          problem={problemAt(problems, [...path, key])}
        />
      ))}
      {unknown.map((key) => (
        <FormControl key={key} name={key} schema={{}} shape={{ kind: "yaml" }} value={value[key]} path={[...path, key]} required={false} problem={problemAt(problems, [...path, key])} />
      ))}
    </>
  );
}
