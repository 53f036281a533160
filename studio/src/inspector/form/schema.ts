/** Reading the JSON Schema of the network file: which form a declaration has. */

import type { Declaration, Json, NetworkDocument } from "../../api/types";
import { asObject, type Ref } from "../../draft/document";

export type Schema = { [key: string]: Json };

const isSchema = (value: Json | undefined): value is Schema => typeof value === "object" && value !== null && !Array.isArray(value);
export const asSchema = (value: Json | undefined): Schema => (isSchema(value) ? value : {});

/** Follow `$ref`s within the document. */
export function resolve(root: Json, schema: Json | undefined): Schema {
  let at = asSchema(schema);
  for (let depth = 0; typeof at.$ref === "string" && depth < 16; depth += 1) {
    const path = at.$ref.replace(/^#\//, "").split("/");
    at = path.reduce<Schema>((node, key) => asSchema(node[key]), asSchema(root));
  }
  return at;
}

function variantsOf(root: Json, schema: Schema): Schema[] {
  const all = schema.anyOf ?? schema.oneOf;
  if (!Array.isArray(all)) return [schema];
  return all.flatMap((each) => variantsOf(root, resolve(root, each))).filter((each) => each.type !== "null");
}

export type Shape =
  | { kind: "boolean" }
  | { kind: "enum"; values: string[]; optional: boolean }
  | { kind: "number"; whole: boolean }
  | { kind: "text" }
  | { kind: "scalar" }
  | { kind: "texts" }
  | { kind: "map"; of: Schema }
  | { kind: "object"; schema: Schema }
  | { kind: "choice"; variants: { label: string; schema: Schema }[] }
  | { kind: "yaml" };

const SCALARS = new Set(["integer", "number", "string", "boolean"]);

function label(schema: Schema): string {
  if (typeof schema.title === "string" && schema.properties) return schema.title.toLowerCase();
  if (schema.type === "array") return "list";
  if (schema.const !== undefined) return String(schema.const);
  if (schema.type === "object") return "map";
  return "text";
}

/** How a value of a schema is edited. */
export function shapeOf(root: Json, given: Json | undefined): Shape {
  const schema = resolve(root, given);
  const variants = variantsOf(root, schema);
  const only = variants.length === 1 ? variants[0] : undefined;
  if (only) return plainShape(root, only, variants !== undefined && Array.isArray(schema.anyOf));
  if (variants.every((each) => SCALARS.has(String(each.type)) && each.const === undefined)) return { kind: variants.every((each) => each.type !== "string") ? "number" : "scalar", whole: false } as Shape;
  if (variants.every((each) => SCALARS.has(String(each.type)))) return { kind: "scalar" };
  return { kind: "choice", variants: variants.map((each) => ({ label: label(each), schema: each })) };
}

function plainShape(root: Json, schema: Schema, optional: boolean): Shape {
  if (Array.isArray(schema.enum)) return { kind: "enum", values: schema.enum.map(String), optional };
  if (schema.const !== undefined) return { kind: "enum", values: [String(schema.const)], optional: true };
  switch (schema.type) {
    case "boolean":
      return { kind: "boolean" };
    case "integer":
    case "number":
      return { kind: "number", whole: schema.type === "integer" };
    case "string":
      return { kind: "text" };
    case "array":
      return resolve(root, schema.items).type === "string" ? { kind: "texts" } : { kind: "yaml" };
    case "object":
      if (schema.properties) return { kind: "object", schema };
      if (isSchema(schema.additionalProperties)) return { kind: "map", of: schema.additionalProperties };
      return { kind: "yaml" };
    default:
      return { kind: "yaml" };
  }
}

/** Which of a choice's variants a value has. */
export function variantOf(variants: { schema: Schema }[], value: Json | undefined): number {
  const found = variants.findIndex(({ schema }) => {
    if (Array.isArray(value)) return schema.type === "array";
    if (typeof value === "object" && value !== null) return schema.type === "object" || schema.properties !== undefined;
    if (value === undefined || value === null) return false;
    if (schema.const !== undefined) return schema.const === value;
    return SCALARS.has(String(schema.type));
  });
  return Math.max(0, found);
}

/** The keys of objects at any depth of a schema; what is not an object has none. */
export function keysOf(root: Json, given: Json | undefined, found = new Set<string>(), seen = new Set<Schema>()): Set<string> {
  const schema = resolve(root, given);
  if (seen.has(schema)) return found;
  seen.add(schema);
  for (const [key, one] of Object.entries(asSchema(schema.properties))) {
    found.add(key);
    keysOf(root, one, found, seen);
  }
  const parts = [schema.additionalProperties, schema.items, schema.anyOf, schema.oneOf].flat();
  for (const part of parts) if (isSchema(part)) keysOf(root, part, found, seen);
  return found;
}

/** The schema of the declaration at `ref`. */
export function schemaFor(root: Json, ref: Ref, document: NetworkDocument, declaration: Declaration): Schema {
  const section = asSchema(asSchema(asSchema(root).properties)[ref.section]);
  const member = asSchema(section.additionalProperties);
  const all = Array.isArray(member.oneOf) ? member.oneOf : Array.isArray(member.anyOf) ? member.anyOf : [member];
  const found = all.map((each) => resolve(root, each)).filter((each) => each.properties);
  if (ref.section === "boxes") return boxSchema(found, document, declaration);
  if (ref.section === "queries")
    return found.find((each) => (declaration.values !== undefined) === (asSchema(each.properties).values !== undefined)) ?? found[0] ?? {};
  return found[0] ?? {};
}

function boxSchema(schemas: Schema[], document: NetworkDocument, declaration: Declaration): Schema {
  const kind = declaration.box;
  const known = schemas.filter((each) => asSchema(asSchema(each.properties).box).const === kind);
  const state = (each: Schema) => asSchema(asSchema(each.properties).state).const === true;
  if (known.length) return known.find((each) => state(each) === (declaration.state === true)) ?? known[0] ?? {};
  const instance = schemas.find((each) => asSchema(asSchema(each.properties).box).const === undefined) ?? {};
  const template = asObject("superboxes", document.superboxes?.[String(kind)]);
  const parameters = asSchema(template.parameters);
  const added = Object.fromEntries(
    Object.entries(parameters).map(([name, value]): [string, Json] => [
      name,
      { title: name, anyOf: [{ type: "number" }, { type: "string" }], default: isSchema(value) ? (value.default ?? null) : value, description: isSchema(value) ? (value.description ?? "") : "" },
    ]),
  );
  return { ...instance, properties: { ...asSchema(instance.properties), ...added } };
}
