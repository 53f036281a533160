/** The one telling parameter of an entity, as its card shows it. */

import type { Declaration, Json, Section } from "../api/types";

const show = (value: Json | undefined): string =>
  value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);

function keysOf(value: Json | undefined): string {
  return value && typeof value === "object" && !Array.isArray(value) ? Object.keys(value).join(", ") : "";
}

function part(value: Json | undefined, key: string): Json | undefined {
  return value && typeof value === "object" && !Array.isArray(value) ? value[key] : undefined;
}

function list(value: Json | undefined): string {
  return Array.isArray(value) ? value.map(show).join(", ") : show(value);
}

function windowText(declaration: Declaration): string {
  const size = show(part(declaration.window, "size"));
  const advance = show(part(declaration.window, "advance"));
  const by = list(part(declaration.order, "by"));
  const every = advance && advance !== size ? ` every ${advance}` : "";
  return `${size}${every}${by ? ` by ${by}` : ""}`;
}

const compact = (sql: Json | undefined) => show(sql).replace(/\s+/g, " ").trim();

const BOXES: Record<string, (declaration: Declaration) => string> = {
  filter: (d) => (d.routes ? keysOf(d.routes) : show(d.where)),
  map: (d) => (d.udf ? show(d.udf) : keysOf(d.compute) || `keep ${list(d.keep)}`),
  union: () => "",
  aggregate: windowText,
  join: (d) => show(d.on),
  resample: (d) => `within ${show(d.within)}`,
  bsort: (d) => `by ${show(part(d.order, "on"))}${d.order && part(d.order, "slack") !== undefined ? `, slack ${show(part(d.order, "slack"))}` : ""}`,
  dedup: (d) => list(d.keys),
  number: (d) => `as ${show(d.as)}`,
  read: (d) => compact(d.sql),
  update: (d) => compact(d.sql),
  wait_for: (d) => show(d.match),
  latch: (d) => `${keysOf(d.compute)} by ${list(d.by)}`,
};

function keepText(value: Json | undefined): string {
  if (value && typeof value === "object" && !Array.isArray(value))
    return [value.time, value.rows && `${show(value.rows)} rows`].filter(Boolean).map((each) => show(each as Json)).join(", ");
  return show(value);
}

const NO_PARAMETERS = new Set(["box", "input", "inputs", "description", "tags", "on_change"]);

/** The parameters of an instance of a superbox. */
const parametersText = (declaration: Declaration): string =>
  Object.entries(declaration)
    .filter(([key]) => !NO_PARAMETERS.has(key))
    .map(([key, value]) => `${key} ${show(value)}`)
    .join(", ");

/** A text of one line; `telling` is the key that the palette names for boxes of other kinds. */
export function tellingOf(section: Section, declaration: Declaration, telling?: string): string {
  if (section === "boxes") {
    const known = BOXES[show(declaration.box)];
    return known ? known(declaration) : telling ? show(declaration[telling]) : parametersText(declaration);
  }
  if (section === "queries") return compact(declaration.sql);
  if (section === "connection_points") return keepText(declaration.keep) || show(declaration.store);
  if (section === "views") return keepText(declaration.keep) || show(declaration.materialize);
  if (section === "streams" || section === "tables") return keysOf(declaration.schema) || show(declaration.schema);
  return "";
}
