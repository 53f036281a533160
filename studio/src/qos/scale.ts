/** Where values of a graph are on the screen (pure). */

import { RULES, type Graph, type GraphKind } from "./graph";
import { percentile, type Observed } from "./observed";

export const WIDTH = 320;
export const HEIGHT = 184;
const LEFT = 34;
const RIGHT = 10;
const TOP = 10;
const BOTTOM = 32;

export type Domain = { low: number; high: number };

/** How many times as long as the graph the range may be: a few slow tuples must not squeeze it. */
const MOST_TIMES = 5;

/** A range of x that shows the whole graph with room to drag points outward, and what was observed but for the slowest 1 %. */
export function domainOf(graph: Graph, kind: GraphKind, observed: Observed[GraphKind] = null): Domain {
  const rules = RULES[kind];
  const first = graph[0]?.[0] ?? 0;
  const last = graph[graph.length - 1]?.[0] ?? 1;
  const air = Math.max((last - Math.min(first, rules.lowest ?? first)) * 0.25, 1e-6);
  return {
    low: rules.lowest ?? first - air,
    high: rules.highest ?? Math.max(last + air, Math.min(percentile(observed, 0.99) ?? last, last * MOST_TIMES)),
  };
}

export const screenX = (x: number, { low, high }: Domain) =>
  LEFT + ((x - low) / (high - low)) * (WIDTH - LEFT - RIGHT);
export const screenY = (y: number) => TOP + (1 - y) * (HEIGHT - TOP - BOTTOM);
export const valueX = (px: number, { low, high }: Domain) =>
  low + ((px - LEFT) / (WIDTH - LEFT - RIGHT)) * (high - low);
export const valueY = (py: number) => 1 - (py - TOP) / (HEIGHT - TOP - BOTTOM);

/** How far the text of a tick reaches to each side of it. */
const reach = (at: number) => (String(at).length * 5.8) / 2;

/** The ticks below the axis that are whole and apart from each other. */
export function shownTicks(domain: Domain): number[] {
  let free = 0;
  return ticks(domain).filter((at) => {
    const x = screenX(at, domain);
    if (x - reach(at) < free || x + reach(at) > WIDTH) return false;
    free = x + reach(at) + 6;
    return true;
  });
}

/** Four or five round numbers within a range. */
export function ticks({ low, high }: Domain): number[] {
  const raw = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const factor = raw / power;
  const step = power * (factor < 1.5 ? 1 : factor < 3.5 ? 2 : factor < 7.5 ? 5 : 10);
  const found: number[] = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at += 1)
    found.push(Number((at * step).toPrecision(12)));
  return found;
}
