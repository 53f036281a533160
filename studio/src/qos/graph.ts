/** Editing utility graphs (pure). The rules are those of `auroral check`. */

import type { Declaration, Json } from "../api/types";
import { omit } from "../store/omit";

export type Point = [number, number];
export type Graph = Point[];
export type GraphKind = "latency" | "loss" | "value" | "throughput";
export const KINDS: GraphKind[] = ["latency", "loss", "value", "throughput"];

/** The graph that holds for outputs without one. */
export const DEFAULT_LATENCY: Graph = [
  [0, 1],
  [1, 1],
  [60, 0],
];

export type KindRules = {
  title: string;
  axis: string;
  unit: string;
  direction: "falls" | "rises" | "any";
  lowest: number | null;
  highest: number | null;
  starter: Graph;
};

export const RULES: Record<GraphKind, KindRules> = {
  latency: {
    title: "Latency",
    axis: "delay in seconds",
    unit: "s",
    direction: "falls",
    lowest: 0,
    highest: null,
    starter: [
      [0, 1],
      [2, 1],
      [10, 0],
    ],
  },
  loss: {
    title: "Loss",
    axis: "share delivered",
    unit: "",
    direction: "rises",
    lowest: 0,
    highest: 1,
    starter: [
      [0, 0],
      [0.5, 0.8],
      [1, 1],
    ],
  },
  value: {
    title: "Value",
    axis: "value of the field",
    unit: "",
    direction: "any",
    lowest: null,
    highest: null,
    starter: [
      [0, 0.2],
      [10, 1],
    ],
  },
  throughput: {
    title: "Throughput",
    axis: "tuples per second",
    unit: "/s",
    direction: "rises",
    lowest: 0,
    highest: null,
    starter: [
      [0, 0],
      [100, 1],
    ],
  },
};

const isPoint = (found: Json): found is [number, number] =>
  Array.isArray(found) && typeof found[0] === "number" && typeof found[1] === "number";

/** The graph of one kind in a QoS document, by ascending x; null if there is none. */
export function graphOf(qos: Declaration | null | undefined, kind: GraphKind): Graph | null {
  const found = qos?.[kind];
  const points = kind === "value" && found && typeof found === "object" && !Array.isArray(found) ? found.graph : found;
  if (!Array.isArray(points)) return null;
  return sorted(points.filter(isPoint));
}

export function valueField(qos: Declaration | null | undefined): string {
  const found = qos?.value;
  const on = found && typeof found === "object" && !Array.isArray(found) ? found.on : null;
  return typeof on === "string" ? on : "";
}

/** The document with another graph; null removes it. Points keep the direction that they had. */
export function withGraph(
  qos: Declaration | null | undefined,
  kind: GraphKind,
  graph: Graph | null,
  on?: string,
): Declaration | null {
  const { [kind]: before, ...rest } = qos ?? {};
  const left = { ...rest };
  if (graph === null) {
    const weights = left.weights;
    if (weights && typeof weights === "object" && !Array.isArray(weights)) {
      const others = omit(weights, kind);
      if (Object.keys(others).length) left.weights = others;
      else delete left.weights;
    }
    return KINDS.some((one) => left[one]) ? left : null;
  }
  const declared = kind === "value" && before && typeof before === "object" && !Array.isArray(before) ? before.graph : before;
  const points: Json = (descends(declared) ? [...graph].reverse() : graph).map((point) => [...point]);
  const result = { ...left, [kind]: kind === "value" ? { on: on ?? valueField(qos), graph: points } : points };
  return inOrder(result);
}

function descends(declared: Json | undefined): boolean {
  if (!Array.isArray(declared)) return false;
  const [first, second] = declared;
  return Boolean(first && second && isPoint(first) && isPoint(second) && first[0] > second[0]);
}

function inOrder(qos: Declaration): Declaration {
  const known = KINDS.filter((kind) => kind in qos).map((kind) => [kind, qos[kind]] as const);
  const others = Object.entries(qos).filter(([key]) => !KINDS.includes(key as GraphKind));
  return Object.fromEntries([...known, ...others]);
}

const sorted = (points: Graph): Graph => [...points].sort((one, other) => one[0] - other[0]);

/** A number with no more digits than a drag means. */
export function tidy(value: number, step: number): number {
  const digits = Math.max(0, Math.min(12, Math.ceil(-Math.log10(step))));
  return Number((Math.round(value / step) * step).toFixed(digits));
}

/** A step that divides a range into a few hundred parts: 1, 2 or 5 times a power of ten. */
export function gridStep(range: number, parts = 400): number {
  const raw = Math.max(range, 1e-9) / parts;
  const power = 10 ** Math.floor(Math.log10(raw));
  const factor = raw / power;
  return power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
}

/** The graph with one point moved, kept between its neighbours and within what the kind allows. */
export function movePoint(graph: Graph, at: number, to: Point, kind: GraphKind, step: number): Graph {
  const rules = RULES[kind];
  const before = graph[at - 1];
  const after = graph[at + 1];
  let x = tidy(to[0], step);
  if (before) x = Math.max(x, tidy(before[0] + step, step));
  if (after) x = Math.min(x, tidy(after[0] - step, step));
  if (rules.lowest !== null) x = Math.max(x, rules.lowest);
  if (rules.highest !== null) x = Math.min(x, rules.highest);
  if ((before && x <= before[0]) || (after && x >= after[0])) x = graph[at]?.[0] ?? x;
  let y = Math.min(Math.max(tidy(to[1], 0.01), 0), 1);
  const [upper, lower] = rules.direction === "falls" ? [before, after] : [after, before];
  if (rules.direction !== "any") {
    if (upper) y = Math.min(y, upper[1]);
    if (lower) y = Math.max(y, lower[1]);
  }
  return graph.map((point, index) => (index === at ? [x, y] : point));
}

/** The graph with a point more, and where it is; null if there is no room for it. */
export function addPoint(
  graph: Graph,
  to: Point,
  kind: GraphKind,
  step: number,
): { graph: Graph; at: number } | null {
  const x = tidy(to[0], step);
  if (graph.some((point) => point[0] === x)) return null;
  const rules = RULES[kind];
  if ((rules.lowest !== null && x < rules.lowest) || (rules.highest !== null && x > rules.highest)) return null;
  const at = graph.filter((point) => point[0] < x).length;
  const grown: Graph = [...graph.slice(0, at), [x, to[1]], ...graph.slice(at)];
  return { graph: movePoint(grown, at, [x, to[1]], kind, step), at };
}

/** The graph without a point; two always stay. */
export function removePoint(graph: Graph, at: number): Graph {
  return graph.length > 2 ? graph.filter((_, index) => index !== at) : graph;
}

/** Utility at x; outside the graph its end points hold. */
export function utilityAt(graph: Graph, x: number): number {
  const after = graph.findIndex((point) => point[0] > x);
  const first = graph[0];
  const last = graph[graph.length - 1];
  if (!first || !last) return 1;
  if (after === 0) return first[1];
  const [x0, y0] = graph[after === -1 ? graph.length - 1 : after - 1] ?? first;
  const next = graph[after];
  if (after === -1 || !next) return last[1];
  return y0 + ((next[1] - y0) * (x - x0)) / (next[0] - x0);
}

/** The end of the good zone of a latency graph: the largest x with the largest utility. */
export function goodUntil(graph: Graph): number {
  const most = Math.max(...graph.map((point) => point[1]));
  if (graph[graph.length - 1]?.[1] === most) return Infinity;
  return Math.max(...graph.filter((point) => point[1] === most).map((point) => point[0]));
}

const MESSAGES = {
  falls: "falls: a longer delay is never worth more",
  rises: "rises: more is never worth less",
};

/** What `check` would say of a graph; null if nothing. */
export function graphProblem(graph: Graph, kind: GraphKind, convex: boolean): string | null {
  const rules = RULES[kind];
  if (graph.length < 2) return "A graph needs two points or more.";
  const slopes = graph.slice(1).map((point, at) => {
    const [x0, y0] = graph[at] ?? point;
    return (point[1] - y0) / (point[0] - x0);
  });
  if (slopes.some((slope) => !Number.isFinite(slope))) return "No x may occur twice.";
  if (graph.some((point) => point[1] < 0 || point[1] > 1)) return "Utilities are within 0 and 1.";
  if (rules.direction === "any") return null;
  const sign = rules.direction === "falls" ? -1 : 1;
  if (slopes.some((slope) => slope * sign < 0)) return `A ${kind} graph ${MESSAGES[rules.direction]}.`;
  if (convex && !isConvex(slopes, rules.direction))
    return `A ${kind} graph gets steeper towards the worse side, never flatter, but for a flat part at its bottom.`;
  return null;
}

function isConvex(slopes: number[], direction: "falls" | "rises"): boolean {
  const steepness = slopes.map(Math.abs);
  if (direction === "rises") steepness.reverse();
  while (steepness.length && steepness[steepness.length - 1] === 0) steepness.pop();
  return steepness.every((slope, at) => {
    const before = steepness[at - 1] ?? 0;
    return before <= slope || Math.abs(before - slope) <= 1e-9 * Math.max(before, slope);
  });
}
