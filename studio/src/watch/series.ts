/** Series of the statistics tab: which chart they are in, and how they go on live (pure). */

import type { History, Picture } from "../api/types";
import { bytes, count, duration, fineShare, rate, share, utility } from "./format";

export const KEEP_S = 900;
export const STEP_S = 2;
/** After so long without a picture, as of a hidden page, a line is broken. */
export const GAP_S = 4 * STEP_S;

type Form = (value: number | null) => string;
export type ChartPlan = { title: string; format: Form; range?: [number, number]; keys: string[] };

const CHARTS: ChartPlan[] = [
  { title: "Utility", format: utility, range: [0, 1.02], keys: ["utility", "value"] },
  { title: "Rate", format: rate, keys: ["rate", "in_rate", "out_rate"] },
  { title: "Delay", format: duration, keys: ["latency_s", "latency_p95_s"] },
  { title: "Queue", format: count, keys: ["queued"] },
  { title: "Results not yet taken", format: count, keys: ["waiting"] },
  { title: "Age of results not yet taken", format: duration, keys: ["lag_s"] },
  { title: "Age of the oldest tuple", format: duration, keys: ["oldest_s"] },
  { title: "Cost per tuple", format: duration, keys: ["cost_s"] },
  { title: "Time per call", format: duration, keys: ["call_s", "step_s"] },
  { title: "Share that passes", format: fineShare, keys: ["selectivity"] },
  { title: "Rows held", format: count, keys: ["held", "rows"] },
  { title: "Share delivered", format: share, range: [0, 1.02], keys: ["loss"] },
  { title: "Shed", format: count, keys: ["shed"] },
  { title: "Late", format: count, keys: ["late"] },
  { title: "Dead letters", format: count, keys: ["dead"] },
  { title: "Memory", format: bytes, keys: ["bytes", "memory_bytes"] },
];

const LABELS: Record<string, string> = {
  utility: "all",
  value: "by value",
  in_rate: "in",
  out_rate: "out",
  latency_s: "mean",
  latency_p95_s: "95 %",
};

export const seriesLabel = (key: string) => LABELS[key] ?? key.replace(/_s$/, "").replaceAll("_", " ");

/** The charts for the series that there are; series that never had a value are left out. */
export function plannedCharts(series: History["series"]): ChartPlan[] {
  const measured = Object.keys(series).filter((key) => series[key]?.some((value) => value !== null));
  // The rate of a box's own arc is what comes out of it.
  const known = measured.filter((key) => key !== "rate" || !measured.includes("out_rate"));
  const planned = CHARTS.map((chart) => ({ ...chart, keys: chart.keys.filter((key) => known.includes(key)) }));
  const placed = new Set(planned.flatMap((chart) => chart.keys));
  const others = known
    .filter((key) => !placed.has(key))
    .map((key) => ({ title: seriesLabel(key), format: count, keys: [key] }));
  return [...planned.filter((chart) => chart.keys.length), ...others];
}

/** The figures of an entity in a picture. */
export function figuresOf(picture: Picture, kind: string, name: string): Record<string, unknown> {
  if (kind === "output") return { ...(picture.outputs[name] ?? {}) };
  if (kind === "point" || kind === "view") return { ...picture.arcs[name], ...picture.points[name] };
  return { ...picture.arcs[name], ...picture.boxes[name], ...picture.queries[name] };
}

const APPENDED: Record<string, string[]> = {
  output: ["utility", "rate", "latency_s", "latency_p95_s", "waiting"],
  box: ["in_rate", "out_rate", "cost_s", "held", "selectivity"],
  point: ["rate", "rows", "bytes"],
  view: ["rate", "rows", "bytes"],
};
const ARC = ["rate", "queued", "oldest_s"];

const numeric = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;

/** The history with what a newer picture says, and without what is older than fifteen minutes. */
export function appended(history: History, picture: Picture, kind: string, name: string): History {
  const at = picture.at_us / 1e6;
  const last = history.at_s[history.at_s.length - 1];
  if (last !== undefined && at - last < STEP_S * 0.9) return history;
  const figures = figuresOf(picture, kind, name);
  const keys = new Set([...Object.keys(history.series), ...(APPENDED[kind] ?? ARC)]);
  const from = history.at_s.findIndex((one) => one > at - KEEP_S);
  const begin = from === -1 ? history.at_s.length : from;
  // What was in between is not known: a line over it would say that it was even.
  const gap = last !== undefined && last > at - KEEP_S && at - last > GAP_S ? [last + STEP_S] : [];
  const series: History["series"] = {};
  for (const key of keys) {
    const before = history.series[key] ?? history.at_s.map(() => null);
    series[key] = [...before.slice(begin), ...gap.map(() => null), numeric(figures[key])];
  }
  return { at_s: [...history.at_s.slice(begin), ...gap, at], series };
}
