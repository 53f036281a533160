/**
 * Which nodes are shown, and where.
 *
 * Positions are kept as if every group were closed, relative to the group that they are in. An open group
 * pushes what stands to the right of it and below it by as much as it is larger than its card, so that rows
 * and columns stay together; closing it brings everything back to where it was.
 */

import type { Layout } from "../api/types";
import type { EdgeInfo, Graph, NodeInfo } from "./graph";
import { contents, openGroups, TOP, type GroupInfo, type Grouping } from "./grouping";

export type Size = { width: number; height: number };
export type SceneNode = Size & {
  id: string;
  info: NodeInfo | null;
  group: GroupInfo | null;
  open: boolean;
  parent: string | null;
  /** It stands outside of the group that is shown alone, and is connected with it. */
  stub: boolean;
  x: number;
  y: number;
};
/** `first` of the edges of its arc; the arc is `shared` if there are others; `targets` are more than one in a closed group. */
export type SceneEdge = EdgeInfo & { from: string; to: string; targets: string[]; first: boolean; shared: boolean };
export type Scene = {
  nodes: SceneNode[];
  edges: SceneEdge[];
  /** Groups that are open, shown or not. */
  open: Set<string>;
  /** By container (a group's id, or "") what has no position yet. */
  missing: Map<string, string[]>;
};

export const FRAME = { top: 40, side: 24, bottom: 24 };
const CARD: Size = { width: 192, height: 88 };
const STUB = { width: 152, height: 40, away: 80, gap: 16 };

const LABEL = { character: 5.6, margin: 8 };

/** What the labels of ports take of a card's width. */
export function labelRoom(info: NodeInfo): { left: number; right: number } {
  const longest = (labels: string[]) => Math.max(0, ...labels.map((label) => label.length));
  const room = (letters: number) => (letters ? Math.ceil(letters * LABEL.character) + LABEL.margin : 0);
  const shown = info.outputs.length > 1 ? info.outputs : [];
  return { left: room(longest(info.inputs.map((port) => port.label))), right: room(longest(shown.map((port) => port.label))) };
}

export function sizeOf(info: NodeInfo | null): Size {
  if (!info) return CARD;
  const ports = Math.max(info.inputs.length, info.outputs.length);
  const tall = (least: number) => Math.max(least, ports * 22 + 8);
  const { left, right } = labelRoom(info);
  switch (info.kind) {
    case "box":
      return { width: CARD.width + left + right, height: tall(88) };
    case "query":
      return { width: CARD.width, height: tall(80) };
    case "output":
      return { width: CARD.width, height: 80 };
    case "point":
      return { width: 152, height: 56 };
    default:
      return { width: 176 + left + right, height: tall(56) };
  }
}

/** Where a card begins and ends of whose input ports one is at a height; a group's card has one in its middle. */
export function heightOf(info: NodeInfo | null, port: string, y: number): { top: number; bottom: number } {
  const at = info ? info.inputs.findIndex((each) => each.id === port) : -1;
  const share = at < 0 ? 0.5 : (at + 1) / ((info?.inputs.length ?? 0) + 1);
  const { height } = sizeOf(info);
  return { top: y - share * height, bottom: y + (1 - share) * height };
}

/** What is shown: everything, or the content of the group `focus` with the ends of its arcs outside. */
export function sceneOf(graph: Graph, grouping: Grouping, layout: Layout, focus: string | null = null): Scene {
  const root = focus !== null && grouping.groups.has(focus) ? focus : TOP;
  const open = openGroups(graph, grouping, layout, root);
  const children = contents(graph, grouping);
  const nodes: SceneNode[] = [];
  const missing = new Map<string, string[]>();

  /** Place the content of a container; gives the size of its frame. */
  const fill = (container: string): Size => {
    const own: SceneNode[] = [];
    const inner: SceneNode[] = [];
    for (const id of children.get(container) ?? []) {
      const at = layout.positions[id];
      if (!at) missing.set(container, [...(missing.get(container) ?? []), id]);
      const group = grouping.groups.get(id) ?? null;
      const info = graph.nodes.get(id) ?? null;
      const shown = group !== null && open.has(id);
      const before = nodes.length;
      const size = shown ? fill(id) : sizeOf(info);
      const within = nodes.splice(before);
      // Without a place it is not shown, but what is missing inside is known.
      if (!at) continue;
      inner.push(...within);
      own.push({ id, info, group, open: shown, parent: container === root ? null : container, stub: false, x: at[0], y: at[1], ...size });
    }
    const moved = displaced(own);
    // A parent stands before what is in it.
    nodes.push(...moved, ...inner);
    const right = Math.max(CARD.width, ...moved.map((node) => node.x + node.width));
    const bottom = Math.max(CARD.height, ...moved.map((node) => node.y + node.height));
    return { width: right + FRAME.side, height: bottom + FRAME.bottom };
  };
  fill(root);
  if (root !== TOP) nodes.push(...stubsOf(graph, grouping, nodes));
  const shown = new Map(nodes.map((node) => [node.id, node.stub]));
  return { nodes, edges: shownEdges(graph, grouping, shown), open, missing };
}

/** By node where it stands on the whole canvas. */
export function placesOf(nodes: SceneNode[]): Map<string, { x: number; y: number }> {
  const found = new Map<string, { x: number; y: number }>();
  for (const node of nodes) {
    const base = (node.parent && found.get(node.parent)) || { x: 0, y: 0 };
    found.set(node.id, { x: base.x + node.x, y: base.y + node.y });
  }
  return found;
}

/** The innermost open frame at a place of the canvas; those in `without` do not count. */
export function frameAt(scene: Scene, x: number, y: number, without: Set<string> = new Set()): string | null {
  const places = placesOf(scene.nodes);
  let found: string | null = null;
  for (const node of scene.nodes) {
    const at = places.get(node.id);
    if (!node.open || !at || without.has(node.id)) continue;
    if (node.parent && without.has(node.parent)) without.add(node.id);
    else if (x >= at.x && x <= at.x + node.width && y >= at.y && y <= at.y + node.height) found = node.id;
  }
  return found;
}

/** What stands outside and is connected with what is shown: sources to the left of it, targets to the right. */
function stubsOf(graph: Graph, grouping: Grouping, nodes: SceneNode[]): SceneNode[] {
  const places = placesOf(nodes);
  const shownAs = (id: string) => {
    for (let at: string | undefined = id; at !== undefined; at = grouping.parent.get(at)) if (places.has(at)) return at;
    return null;
  };
  const sides = { left: new Map<string, number>(), right: new Map<string, number>() };
  for (const edge of graph.edges) {
    const [from, to] = [shownAs(edge.source), shownAs(edge.target)];
    if (!from && to && !sides.left.has(edge.source)) sides.left.set(edge.source, places.get(to)?.y ?? 0);
    if (from && !to && !sides.right.has(edge.target)) sides.right.set(edge.target, places.get(from)?.y ?? 0);
  }
  for (const id of sides.left.keys()) sides.right.delete(id);
  const top = nodes.filter((node) => !node.parent);
  const left = Math.min(0, ...top.map((node) => node.x)) - STUB.away - STUB.width;
  const right = Math.max(0, ...top.map((node) => node.x + node.width)) + STUB.away;
  const column = (side: Map<string, number>, x: number): SceneNode[] => {
    let free = -Infinity;
    return [...side].sort((one, other) => one[1] - other[1]).flatMap(([id, wanted]) => {
      const info = graph.nodes.get(id);
      if (!info) return [];
      const height = Math.max(STUB.height, Math.max(info.inputs.length, info.outputs.length) * 16 + 8);
      const y = Math.max(wanted, free);
      free = y + height + STUB.gap;
      return [{ id, info, group: null, open: false, parent: null, stub: true, x, y, width: STUB.width, height }];
    });
  };
  return [...column(sides.left, left), ...column(sides.right, right)];
}

/** The growth of groups along a line; of those that stand beside each other only the largest counts. */
function growth(groups: { at: number; by: number }[], size: number): number {
  let [total, end, largest] = [0, -Infinity, 0];
  for (const { at, by } of [...groups].sort((one, other) => one.at - other.at)) {
    if (at >= end) {
      total += largest;
      [largest, end] = [0, at + size];
    }
    largest = Math.max(largest, by);
  }
  return total + largest;
}

type Span = { from: number; size: number };
/** Along one axis: the size of a closed group's card, and how much of it is beside a neighbour that is not pushed. */
type Axis = { card: number; beside: number };
const ACROSS: Axis = { card: CARD.width, beside: 96 };
const DOWN: Axis = { card: CARD.height, beside: 24 };

/**
 * How far open groups push what stands at a place along one axis.
 *
 * What is beside the beginning of a group stays there, what is past its card moves by as much as the group
 * has grown, and what is between moves in proportion: so every place beside an open group can be reached.
 */
function shift(at: number, groups: Span[], { card, beside }: Axis): number {
  const passed = (from: number) => Math.min(Math.max((at - from - beside) / (card - beside), 0), 1);
  return growth(groups.map(({ from, size }) => ({ at: from, by: Math.max(0, size - card) * passed(from) })), card);
}

/** The place that `shift` brings to `shown`: places and what becomes of them have the same order. */
function unshifted(shown: number, groups: Span[], axis: Axis): number {
  let [low, high] = [shown - groups.reduce((all, { size }) => all + size, 0), shown];
  for (let round = 0; round < 40; round += 1) {
    const middle = (low + high) / 2;
    if (middle + shift(middle, groups, axis) < shown) low = middle;
    else high = middle;
  }
  return Math.round(high * 100) / 100;
}

const spans = (open: SceneNode[], id: string): { across: Span[]; down: Span[] } => {
  const others = open.filter((group) => group.id !== id);
  return {
    across: others.map((group) => ({ from: group.x, size: group.width })),
    down: others.map((group) => ({ from: group.y, size: group.height })),
  };
};

function displaced(own: SceneNode[]): SceneNode[] {
  const open = own.filter((node) => node.open);
  if (!open.length) return own;
  return own.map((node) => {
    const { across, down } = spans(open, node.id);
    const [dx, dy] = [shift(node.x, across, ACROSS), shift(node.y, down, DOWN)];
    return dx || dy ? { ...node, x: node.x + dx, y: node.y + dy } : node;
  });
}

/** The position to keep for a node that is shown at (x, y) of a container: the reverse of what open groups do. */
export function undisplaced(scene: Scene, layout: Layout, id: string, x: number, y: number, container?: string | null): [number, number] {
  const parent = container === undefined ? (scene.nodes.find((each) => each.id === id)?.parent ?? null) : container;
  const open = scene.nodes
    .filter((each) => each.open && each.parent === parent && each.id !== id)
    .map((each) => ({ ...each, x: layout.positions[each.id]?.[0] ?? each.x, y: layout.positions[each.id]?.[1] ?? each.y }));
  const { across, down } = spans(open, id);
  return [unshifted(x, across, ACROSS), unshifted(y, down, DOWN)];
}

/** Edges between what is shown; what a closed group hides is drawn to the group. Stubs are not connected with each other. */
function shownEdges(graph: Graph, grouping: Grouping, shown: Map<string, boolean>): SceneEdge[] {
  const top = (id: string): string | null => {
    for (let at: string | undefined = id; at !== undefined; at = grouping.parent.get(at)) if (shown.has(at)) return at;
    return null;
  };
  const found = new Map<string, SceneEdge>();
  const amount = new Map<string, number>();
  for (const edge of graph.edges) {
    const [from, to] = [top(edge.source), top(edge.target)];
    if (!from || !to || from === to || (shown.get(from) && shown.get(to))) continue;
    const whole = from === edge.source && to === edge.target;
    const key = whole ? edge.id : `${edge.arc}>${from}>${to}`;
    const drawn = found.get(key);
    if (drawn) {
      drawn.targets.push(edge.target);
      continue;
    }
    found.set(key, { ...edge, id: key, from, to, targets: [edge.target], first: !amount.has(edge.arc), shared: false });
    amount.set(edge.arc, (amount.get(edge.arc) ?? 0) + 1);
  }
  return [...found.values()].map((edge) => ({ ...edge, shared: (amount.get(edge.arc) ?? 0) > 1 }));
}
