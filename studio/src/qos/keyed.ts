import { addPoint, gridStep, movePoint, removePoint, type Graph, type GraphKind, type Point } from "./graph";
import type { Domain } from "./scale";

const KEYS: Record<string, Point> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};

/** The graph after a key on a point; null if the key means nothing. Shift makes small steps. */
export function keyed(
  name: string,
  fine: boolean,
  graph: Graph,
  at: number,
  kind: GraphKind,
  domain: Domain,
): Graph | null {
  const point = graph[at];
  if (!point) return null;
  const step = gridStep(domain.high - domain.low);
  if (name === "Delete" || name === "Backspace") return removePoint(graph, at);
  if (name === "Insert" || name === "+") {
    const other = graph[at + 1] ?? graph[at - 1] ?? point;
    const half: Point = [(point[0] + other[0]) / 2, (point[1] + other[1]) / 2];
    return addPoint(graph, half, kind, step)?.graph ?? null;
  }
  const by = KEYS[name];
  if (!by) return null;
  const stride = fine ? step : gridStep(domain.high - domain.low, 40);
  return movePoint(graph, at, [point[0] + by[0] * stride, point[1] + by[1] * (fine ? 0.01 : 0.05)], kind, step);
}
