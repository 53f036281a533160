/**
 * Which nodes are shown, and where.
 *
 * Positions are kept as if every group were closed, relative to the group that they are in. An open group
 * pushes its neighbours to the right of it and below it by as much as it is larger than its card; closing
 * it brings everything back to where it was.
 */

import type { Layout, NetworkDocument } from "../api/types";
import { entries, membersOf, parents } from "../draft/document";
import { nodeId, type EdgeInfo, type Graph, type NodeInfo } from "./graph";

export type Size = { width: number; height: number };
export type GroupInfo = { id: string; name: string; title: string; declared: boolean; members: number };
export type SceneNode = Size & {
  id: string;
  info: NodeInfo | null;
  group: GroupInfo | null;
  open: boolean;
  parent: string | null;
  x: number;
  y: number;
};
export type SceneEdge = EdgeInfo & { from: string; to: string };
export type Scene = {
  nodes: SceneNode[];
  edges: SceneEdge[];
  /** By container (a group's id, or "") what has no position yet. */
  missing: Map<string, string[]>;
};

export const TOP = "";
export const MANY_BOXES = 300;
export const FRAME = { top: 40, side: 24, bottom: 24 };
const CARD: Size = { width: 192, height: 88 };

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
      return { width: CARD.width, height: tall(60) };
    case "output":
      return { width: CARD.width, height: 80 };
    case "point":
      return { width: 152, height: 56 };
    default:
      return { width: 176 + left + right, height: tall(56) };
  }
}

/** Groups, and by node or group the group around it. */
export type Grouping = { groups: Map<string, GroupInfo>; parent: Map<string, string> };

/** Declared groups; without any, in a large network, one for each application. */
export function groupingOf(document: NetworkDocument, graph: Graph): Grouping {
  const groups = new Map<string, GroupInfo>();
  const parent = new Map<string, string>();
  for (const [name] of entries(document, "groups")) {
    const id = nodeId("groups", name);
    groups.set(id, { id, name, title: name, declared: true, members: membersOf(document, name).length });
  }
  for (const [member, group] of parents(document)) {
    const id = graph.nodes.has(member) ? member : nodeId("groups", member);
    if (graph.nodes.has(id) || groups.has(id)) parent.set(id, nodeId("groups", group));
  }
  if (!groups.size && graph.nodes.size > MANY_BOXES) addApplications(graph, groups, parent);
  return { groups, parent };
}

function addApplications(graph: Graph, groups: Map<string, GroupInfo>, parent: Map<string, string>): void {
  const into = new Map<string, string[]>();
  for (const edge of graph.edges) into.set(edge.target, [...(into.get(edge.target) ?? []), edge.source]);
  for (const output of graph.nodes.values()) {
    if (output.kind !== "output" && output.kind !== "view") continue;
    const id = `application:${output.name}`;
    let members = 0;
    const stack = [output.id];
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      const info = graph.nodes.get(at);
      if (!info || parent.has(at) || info.kind === "stream" || info.kind === "table") continue;
      parent.set(at, id);
      members += 1;
      stack.push(...(into.get(at) ?? []));
    }
    groups.set(id, { id, name: output.name, title: `application ${output.name}`, declared: false, members });
  }
}

/** Whether a group is open: as the person left it, else open in a network that is not large. */
export const isOpen = (layout: Layout, id: string, boxes: number): boolean =>
  layout.open[id] ?? boxes <= MANY_BOXES;

export function sceneOf(graph: Graph, grouping: Grouping, layout: Layout): Scene {
  const large = graph.nodes.size;
  const open = (id: string) => isOpen(layout, id, large);
  const children = new Map<string, string[]>();
  for (const id of [...grouping.groups.keys(), ...graph.nodes.keys()]) {
    const around = grouping.parent.get(id) ?? TOP;
    children.set(around, [...(children.get(around) ?? []), id]);
  }
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
      const shown = group !== null && open(id);
      const before = nodes.length;
      const size = shown ? fill(id) : sizeOf(info);
      const within = nodes.splice(before);
      // Without a place it is not shown, but what is missing inside is known.
      if (!at) continue;
      inner.push(...within);
      own.push({ id, info, group, open: shown, parent: container || null, x: at[0], y: at[1], ...size });
    }
    const moved = displaced(own);
    // A parent stands before what is in it.
    nodes.push(...moved, ...inner);
    const right = Math.max(CARD.width, ...moved.map((node) => node.x + node.width));
    const bottom = Math.max(CARD.height, ...moved.map((node) => node.y + node.height));
    return { width: right + FRAME.side, height: bottom + FRAME.bottom };
  };
  fill(TOP);
  return { nodes, edges: shownEdges(graph, grouping, new Set(nodes.map((node) => node.id))), missing };
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

/** How far open groups push a node at (x, y) of the same container. */
function push(x: number, y: number, id: string, open: SceneNode[]): [number, number] {
  const others = open.filter((group) => group.id !== id);
  const left = others.filter((group) => x >= group.x + CARD.width);
  const above = others.filter((group) => !left.includes(group) && y >= group.y + CARD.height);
  const dx = growth(left.map((group) => ({ at: group.x, by: Math.max(0, group.width - CARD.width) })), CARD.width);
  const dy = growth(above.map((group) => ({ at: group.y, by: Math.max(0, group.height - CARD.height) })), CARD.height);
  return [dx, dy];
}

function displaced(own: SceneNode[]): SceneNode[] {
  const open = own.filter((node) => node.open);
  if (!open.length) return own;
  return own.map((node) => {
    const [dx, dy] = push(node.x, node.y, node.id, open);
    return dx || dy ? { ...node, x: node.x + dx, y: node.y + dy } : node;
  });
}

/** The position to keep for a node that is shown at (x, y): the reverse of what open groups do. */
export function undisplaced(scene: Scene, layout: Layout, id: string, x: number, y: number): [number, number] {
  const node = scene.nodes.find((each) => each.id === id);
  const open = scene.nodes
    .filter((each) => each.open && each.parent === (node?.parent ?? null) && each.id !== id)
    .map((each) => ({ ...each, x: layout.positions[each.id]?.[0] ?? each.x, y: layout.positions[each.id]?.[1] ?? each.y }));
  let [px, py] = [x, y];
  for (let round = 0; round < 4; round += 1) {
    const [dx, dy] = push(px, py, id, open);
    if (px + dx === x && py + dy === y) break;
    [px, py] = [x - dx, y - dy];
  }
  return [Math.round(px), Math.round(py)];
}

/** Edges between what is shown; what a closed group hides is drawn to the group. */
function shownEdges(graph: Graph, grouping: Grouping, shown: Set<string>): SceneEdge[] {
  const top = (id: string): string | null => {
    for (let at: string | undefined = id; at !== undefined; at = grouping.parent.get(at)) if (shown.has(at)) return at;
    return null;
  };
  const found = new Map<string, SceneEdge>();
  for (const edge of graph.edges) {
    const [from, to] = [top(edge.source), top(edge.target)];
    if (!from || !to || from === to) continue;
    const whole = from === edge.source && to === edge.target;
    const key = whole ? edge.id : `${edge.arc}>${from}>${to}`;
    if (!found.has(key)) found.set(key, { ...edge, id: key, from, to });
  }
  return [...found.values()];
}

/** The groups around a node, outermost first. */
export function around(grouping: Grouping, id: string): string[] {
  const found: string[] = [];
  for (let at = grouping.parent.get(id); at !== undefined; at = grouping.parent.get(at)) found.unshift(at);
  return found;
}
