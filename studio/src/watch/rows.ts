/** Rows as tables: fields, widths, JSON, what is drawn (pure). */

import type { Field, Json, Row } from "../api/types";
import { value } from "./format";

/** Columns that the engine adds: the moment, and the time of entry. */
export const HIDDEN = new Set(["_seq", "_at", "_sub"]);

export function rowObject(fields: Field[], row: Json[]): Row {
  return Object.fromEntries(fields.map((field, at) => [field.name, row[at] ?? null]));
}

/** A tuple without the columns that the engine adds, as one line of JSON. */
export function tupleJson(fields: Field[], row: Json[]): string {
  const shown = Object.entries(rowObject(fields, row)).filter(([name]) => !HIDDEN.has(name));
  return JSON.stringify(Object.fromEntries(shown));
}

/** Fields whose types are not known, by the values of the latest rows. */
export function inferFields(names: string[], rows: Json[][]): Field[] {
  const latest = rows.slice(-50);
  return names.map((name, at) => {
    const known = latest.find((row) => (row[at] ?? null) !== null);
    return { name, type: typeOf(known?.[at] ?? null) };
  });
}

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d/;

function typeOf(found: Json): string {
  if (found === null) return "";
  if (typeof found === "number") return "double";
  if (typeof found === "boolean") return "boolean";
  if (typeof found === "string") return INSTANT.test(found) ? "timestamp" : "string";
  return Array.isArray(found) ? "array" : "struct";
}

const NUMBERS = /^(tinyint|smallint|int|integer|bigint|long|short|byte|float|double|decimal)/i;
export const isNumeric = (type: string) => NUMBERS.test(type);
export const isTime = (type: string) => /^(timestamp|date)/i.test(type);

/** Widths of columns in characters, in steps so that they seldom change. */
export function columnWidths(fields: Field[], rows: Json[][]): number[] {
  const looked = rows.length > 120 ? [...rows.slice(0, 60), ...rows.slice(-60)] : rows;
  return fields.map((field, at) => {
    const widest = Math.max(field.name.length + 1, ...looked.map((row) => value(row[at]).length));
    return Math.min(Math.max(Math.ceil((widest + 2) / 4) * 4, 8), 44);
  });
}

/** Which rows are drawn: those in view and a few beyond. */
export function visibleRange(
  total: number,
  top: number,
  height: number,
  rowHeight: number,
): { from: number; to: number } {
  const from = Math.max(0, Math.min(Math.floor(top / rowHeight) - 8, total));
  return { from, to: Math.min(total, Math.ceil((top + height) / rowHeight) + 8) };
}

export type RowBuffer = {
  names: string[];
  rows: Json[][];
  /** Rows that were dropped at the front because there were too many. */
  forgotten: number;
  /** Rows that the server left out because this page was too slow. */
  dropped: number;
};

export const EMPTY_BUFFER: RowBuffer = { names: [], rows: [], forgotten: 0, dropped: 0 };

/** The buffer with more rows, at most `most` of them. */
export function append(buffer: RowBuffer, rows: Row[], dropped: number, most: number): RowBuffer {
  const names = [...buffer.names];
  for (const name of Object.keys(rows[0] ?? {})) if (!names.includes(name)) names.push(name);
  const all = buffer.rows.concat(rows.map((row) => names.map((name) => row[name] ?? null)));
  const kept = all.length > most ? all.slice(-most) : all;
  return {
    names: names.length === buffer.names.length ? buffer.names : names,
    rows: kept,
    forgotten: buffer.forgotten + all.length - kept.length,
    dropped: buffer.dropped + dropped,
  };
}
