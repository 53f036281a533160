/** New declarations from the palette, fitted to the arc that they read. */

import type { ArcInfo, Declaration, Field, Json, PaletteEntry } from "../api/types";

const NUMBER = /^(tinyint|smallint|int|bigint|float|double|decimal)/;

const number = (fields: Field[]) => fields.find((field) => NUMBER.test(field.type));
const text = (fields: Field[]) => fields.find((field) => field.type === "string");

/** The field by which windows go: one that progresses, else a time, else a number. */
function orderField(arc: ArcInfo): string | undefined {
  return arc.progress[0] ?? arc.fields.find((field) => field.type.startsWith("timestamp"))?.name ?? number(arc.fields)?.name;
}

function isTime(arc: ArcInfo, name: string | undefined): boolean {
  return /^(timestamp|date)/.test(arc.fields.find((field) => field.name === name)?.type ?? "");
}

/** Parameters that are right for an arc, so that a new box is valid where it can be. */
function fitted(kind: string, arc: ArcInfo): Declaration {
  const on = orderField(arc);
  const order: Json = on ? (arc.progress.includes(on) ? { on } : { on, slack: 0 }) : { on: "tup#", slack: 0 };
  const size: Json = isTime(arc, on) ? "1 minute" : 10;
  const first = arc.fields[0]?.name ?? "field";
  const measured = number(arc.fields.filter((field) => field.name !== on));
  switch (kind) {
    case "filter":
      return { where: measured ? `${measured.name} > 0` : `${first} IS NOT NULL` };
    case "map":
      return { keep: "*" };
    case "aggregate":
      return { order, window: { size }, compute: { n: "count(*)" } };
    case "bsort":
      return { order: { ...(order as Record<string, Json>), slack: 10 } };
    case "dedup":
      return { keys: [first], order: on ? { on } : order };
    case "latch":
      return { by: [text(arc.fields)?.name ?? first], compute: { n: "count(*)" } };
    default:
      return {};
  }
}

/** A declaration to begin with; wires of the example in the palette are not taken over. */
export function startingDeclaration(entry: PaletteEntry, arc?: ArcInfo): Declaration {
  const made: Declaration = structuredClone(entry.starter);
  if (entry.section === "boxes") {
    made.box ??= entry.kind;
    if (entry.inputs === "many") made.inputs = [];
    else if (entry.inputs === "two") made.inputs = ["", ""];
    else delete made.input;
  }
  if (entry.section === "outputs" || entry.section === "views") delete made.from;
  if (entry.section === "connection_points" && made.store === undefined) delete made.on;
  if (!arc || !arc.fields.length) return made;
  return { ...made, ...(entry.section === "boxes" ? fitted(entry.kind, arc) : {}) };
}

const STEMS: Record<string, string> = {
  stream: "stream",
  streams: "stream",
  tables: "table",
  queries: "query",
  connection_points: "point",
  views: "view",
  outputs: "output",
};

export const stemOf = (entry: PaletteEntry): string =>
  entry.section === "boxes" ? entry.kind : (STEMS[entry.section] ?? entry.kind);
