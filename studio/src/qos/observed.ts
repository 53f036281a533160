/** What was observed of an output, and what graphs would make of it (pure). */

import type { Declaration, Json } from "../api/types";
import { graphOf, KINDS, utilityAt, type Graph, type GraphKind } from "./graph";

/** Observed x with how often; null if nothing is known of the kind. */
export type Observed = Record<GraphKind, { x: number; weight: number }[] | null>;

export const NOTHING: Observed = { latency: null, loss: null, value: null, throughput: null };

const number = (found: Json | undefined): number | null => (typeof found === "number" ? found : null);

/** The delays, loss and throughput in the description of an output. */
export function observedOf(description: { [key: string]: Json }, values: number[]): Observed {
  const quality = description.quality;
  if (!quality || typeof quality !== "object" || Array.isArray(quality)) return NOTHING;
  const seconds = Array.isArray(quality.history) ? quality.history : [];
  const delays = (Array.isArray(quality.delays) ? quality.delays : []).flatMap((pair) => {
    const [x, weight] = Array.isArray(pair) ? pair : [];
    return typeof x === "number" && typeof weight === "number" ? [{ x, weight }] : [];
  });
  const delivered = number(quality.delivered) ?? 0;
  const shed = number(quality.shed) ?? 0;
  const lately = seconds.reduce<number>((all, second) => {
    if (!second || typeof second !== "object" || Array.isArray(second)) return all;
    return (number(second.ago_s) ?? 61) <= 60 ? all + (number(second.delivered) ?? 0) : all;
  }, 0);
  return {
    latency: delays.length ? delays : null,
    loss: delivered + shed > 0 ? [{ x: delivered / (delivered + shed), weight: 1 }] : null,
    value: values.length ? values.map((x) => ({ x, weight: 1 })) : null,
    throughput: seconds.length ? [{ x: lately / 60, weight: 1 }] : null,
  };
}

/** Mean utility of what was observed; null if nothing was. */
export function utilityOf(graph: Graph, observed: Observed[GraphKind]): number | null {
  if (!observed?.length) return null;
  const weight = observed.reduce((all, one) => all + one.weight, 0);
  return observed.reduce((all, one) => all + utilityAt(graph, one.x) * one.weight, 0) / weight;
}

/** The utility that the graphs of a document would give: the weighted mean of the kinds that were observed; null if none was. */
export function predicted(qos: Declaration, observed: Observed): number | null {
  const weights = qos.weights;
  const weightOf = (kind: GraphKind) => {
    const declared = weights && typeof weights === "object" && !Array.isArray(weights) ? weights[kind] : 1;
    return typeof declared === "number" ? declared : 1;
  };
  let total = 0;
  let sum = 0;
  for (const kind of KINDS) {
    const graph = graphOf(qos, kind);
    if (!graph) continue;
    const found = utilityOf(graph, observed[kind]);
    if (found === null) continue;
    total += weightOf(kind);
    sum += weightOf(kind) * found;
  }
  return total ? sum / total : null;
}

/** Bars of a histogram over a range, each within [0, 1]; what is outside counts at the ends. */
export function histogram(observed: Observed[GraphKind], low: number, high: number, bars: number): number[] {
  const found = new Array<number>(bars).fill(0);
  for (const { x, weight } of observed ?? []) {
    const at = Math.min(Math.max(Math.floor(((x - low) / (high - low)) * bars), 0), bars - 1);
    found[at] = (found[at] ?? 0) + weight;
  }
  const most = Math.max(...found, 1e-12);
  return found.map((one) => one / most);
}

/** The x that a share of what was observed does not exceed; null if nothing was. */
export function percentile(observed: Observed[GraphKind], share: number): number | null {
  const ordered = [...(observed ?? [])].sort((one, other) => one.x - other.x);
  let left = share * ordered.reduce((all, one) => all + one.weight, 0);
  for (const { x, weight } of ordered) {
    left -= weight;
    if (left <= 1e-9) return x;
  }
  return null;
}
