/** The part of the canvas that is seen: whose choice it is, and how other parts move it. */

import type { ReactFlowInstance } from "@xyflow/react";

import type { FlowEdge, FlowNode } from "./flow";
import { reveal } from "./groups";
import { useModel } from "./model";
import { placesOf } from "./scene";

type Flow = ReactFlowInstance<FlowNode, FlowEdge>;
type Viewport = { x: number; y: number; zoom: number };

let current: Flow | null = null;
/** The person has moved the view, or was led somewhere: it is not fitted again by itself. */
let chosen = false;

export function tellFlow(flow: Flow | null): void {
  current = flow;
}

export const chooseView = (): void => void (chosen = true);
export const isChosen = (): boolean => chosen;
export const viewport = (): Viewport | null => current?.getViewport() ?? null;

const calm = (): boolean => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
const duration = (): number => (calm() ? 0 : 240);

/** Run once everything that is shown has its place, and is drawn; gives what takes the wish back. */
export function whenPlaced(work: () => void): () => void {
  let frame = 0;
  const draw = () => {
    frame = requestAnimationFrame(() => (frame = requestAnimationFrame(work)));
  };
  if (!useModel.getState().scene.missing.size) {
    draw();
    return () => cancelAnimationFrame(frame);
  }
  const stop = useModel.subscribe((state) => {
    if (state.scene.missing.size) return;
    stop();
    draw();
  });
  return () => {
    stop();
    cancelAnimationFrame(frame);
  };
}

export async function fitAll(): Promise<void> {
  chosen = false;
  await current?.fitView({ padding: 0.06, maxZoom: 1, duration: duration() });
}

export function goTo(to: Viewport): void {
  chosen = true;
  void current?.setViewport(to, { duration: duration() });
}

/** Show a node, whatever group it is in, large enough to be read. */
export function centerOn(node: string): () => void {
  const wanted = node.split("/")[0] ?? node;
  chosen = true;
  reveal(wanted);
  const group = useModel.getState().grouping.groups.has(wanted);
  return whenPlaced(() => {
    const limits = group ? { padding: 0.06, maxZoom: 1 } : { padding: 0.4, maxZoom: Math.max(1, current?.getZoom() ?? 1), minZoom: 0.5 };
    void current?.fitView({ nodes: [{ id: wanted }], ...limits, duration: duration() });
  });
}

/** Move the view as little as needed for a node to be seen. */
export function bringIntoView(id: string): void {
  reveal(id);
  whenPlaced(() => {
    const node = useModel.getState().scene.nodes.find((each) => each.id === id);
    const at = placesOf(useModel.getState().scene.nodes).get(id);
    const view = viewport();
    const size = document.querySelector(".canvas")?.getBoundingClientRect();
    if (!node || !at || !view || !size) return;
    const to = intoView({ ...at, width: node.width, height: node.height }, view, size);
    if (to) goTo(to);
  });
}

const MARGIN = 24;
/** What the corners below are covered by, with their margins: zoom buttons, and the map as soon as not everything is seen. */
const CORNERS = { left: { width: 184, height: 64 }, right: { width: 192, height: 136 } };

type Size = { width: number; height: number };
type Rect = Size & { x: number; y: number };

/** The view that shows a rectangle wholly; null if this one does. */
export function intoView(it: Rect, view: Viewport, size: Size): Viewport | null {
  const shift = (from: number, length: number, room: number) => {
    if (from < MARGIN) return MARGIN - from;
    return from + length > room - MARGIN ? Math.max(MARGIN - from, room - MARGIN - from - length) || 0 : 0;
  };
  const [width, height] = [it.width * view.zoom, it.height * view.zoom];
  const [x, y] = [it.x * view.zoom + view.x, it.y * view.zoom + view.y];
  const [dx, down] = [shift(x, width, size.width), shift(y, height, size.height)];
  const dy = down + aboveCorners({ x: x + dx, y: y + down, width, height }, size);
  return dx || dy ? { x: view.x + dx, y: view.y + dy, zoom: view.zoom } : null;
}

/** How far up a rectangle has to move so that neither corner covers it; not at all where there is no room above. */
function aboveCorners({ x, y, width, height }: Rect, size: Size): number {
  const { left, right } = CORNERS;
  const covered = Math.max(x < left.width ? left.height : 0, x + width > size.width - right.width ? right.height : 0);
  const up = covered ? Math.min(size.height - covered - y - height, 0) : 0;
  return y + up < MARGIN ? 0 : up;
}

export function zoomBy(way: "in" | "out"): void {
  chosen = true;
  void (way === "in" ? current?.zoomIn({ duration: duration() }) : current?.zoomOut({ duration: duration() }));
}

export function panBy(dx: number, dy: number): void {
  const view = viewport();
  if (view) goTo({ ...view, x: view.x + dx, y: view.y + dy });
}
