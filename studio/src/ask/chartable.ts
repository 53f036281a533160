/** Which columns of a result make a chart, and the lines of it (pure). */

import type { Field, Json } from "../api/types";
import { MOST_LINES, type ChartSeries } from "../watch/lines";
import { isNumeric, isTime } from "../watch/rows";

const TIMELIKE = /(^|_)(time|ts|at|tup|hour|minute|second)$/i;

export type ChartColumns = { x: Field[]; y: Field[]; by: Field[] };
export type ChartChoice = { x: string; y: string; by: string | null };

/** The columns that can be the time, the value, and what lines are told apart by. */
export function chartColumns(fields: Field[]): ChartColumns {
  const shown = fields.filter((field) => field.name !== "_seq" && field.name !== "_sub");
  const times = shown.filter((field) => isTime(field.type));
  const like = shown.filter((field) => isNumeric(field.type) && TIMELIKE.test(field.name));
  const x = [...times, ...like];
  return {
    x,
    y: shown.filter((field) => isNumeric(field.type) && !(like.includes(field) && like.length === 1 && !times.length)),
    by: shown.filter((field) => /^(string|boolean)/i.test(field.type)),
  };
}

/** A chart to begin with; null if there is none. The value is the last number, as results have it. */
export function defaultChoice(columns: ChartColumns): ChartChoice | null {
  const x = columns.x.find((field) => field.name !== "_at") ?? columns.x[0];
  const y = [...columns.y].reverse().find((field) => field.name !== x?.name);
  return x && y ? { x: x.name, y: y.name, by: columns.by[0]?.name ?? null } : null;
}

export function isTimeColumn(fields: Field[], name: string): boolean {
  return isTime(fields.find((field) => field.name === name)?.type ?? "");
}

/** Lines over a common x, each for one value of the `by` column; the most frequent ones. */
export function chartLines(
  fields: Field[],
  rows: Json[][],
  choice: ChartChoice,
): { at: number[]; series: ChartSeries[]; omitted: number } {
  const column = (name: string | null) => fields.findIndex((field) => field.name === name);
  const [x, y, by] = [column(choice.x), column(choice.y), column(choice.by)];
  const time = isTimeColumn(fields, choice.x);
  const lines = new Map<string, Map<number, number>>();
  const xs = new Set<number>();
  for (const row of rows) {
    const at = time ? Date.parse(String(row[x])) / 1000 : Number(row[x]);
    const value = row[y];
    if (!Number.isFinite(at) || typeof value !== "number") continue;
    const label = by < 0 ? choice.y : String(row[by]);
    const line = lines.get(label) ?? new Map<number, number>();
    lines.set(label, line.set(at, value));
  }
  const shown = [...lines].sort((one, other) => other[1].size - one[1].size).slice(0, MOST_LINES);
  for (const [, line] of shown) for (const at of line.keys()) xs.add(at);
  const at = [...xs].sort((one, other) => one - other);
  return {
    at,
    series: shown
      .sort((one, other) => one[0].localeCompare(other[0]))
      .map(([label, line]) => ({ label, values: joined(at.map((one) => line.get(one))) })),
    omitted: lines.size - shown.length,
  };
}

/** uPlot joins points over `undefined` and breaks the line at `null`. */
const joined = (values: (number | undefined)[]) => values as (number | null)[];
