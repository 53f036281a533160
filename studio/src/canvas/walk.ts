/** Walking along arcs with the arrow keys: from a node to an arc, and on to the next node. */

import { selectedEdges, selectedNodes, selectOnly, useFlow, type FlowEdge, type FlowNode } from "./flow";

export type Direction = "left" | "right" | "up" | "down";

const y = (node: FlowNode | undefined): number => (node?.position.y ?? 0) + (node?.height ?? 0) / 2;

const ofNode = (edges: FlowEdge[], id: string, direction: Direction) =>
  edges.filter((edge) => (direction === "right" ? edge.source : edge.target) === id);

/** The neighbour of a list's element, as far as there is one. */
function neighbour<T>(items: T[], item: T, step: number): T {
  return items[Math.min(Math.max(items.indexOf(item) + step, 0), items.length - 1)] ?? item;
}

export type Step = { node?: string; edge?: string };

/** Where the next step leads from the selected node or edge. */
export function stepFrom(nodes: FlowNode[], edges: FlowEdge[], at: Step, direction: Direction): Step {
  const place = (id: string) => nodes.find((node) => node.id === id);
  const edge = edges.find((each) => each.id === at.edge);
  const node = nodes.find((each) => each.id === at.node);
  if (edge) {
    if (direction === "right") return { node: edge.target };
    if (direction === "left") return { node: edge.source };
    const siblings = edges.filter((each) => each.source === edge.source || each.target === edge.target);
    siblings.sort((a, b) => y(place(a.target)) - y(place(b.target)) || y(place(a.source)) - y(place(b.source)));
    return { edge: neighbour(siblings, edge, direction === "down" ? 1 : -1).id };
  }
  if (!node) return { node: [...nodes].sort((a, b) => a.position.x - b.position.x)[0]?.id };
  if (direction === "left" || direction === "right") return { edge: ofNode(edges, node.id, direction)[0]?.id ?? undefined, node: ofNode(edges, node.id, direction).length ? undefined : node.id };
  const sign = direction === "down" ? 1 : -1;
  const column = nodes.filter((each) => each.parentId === node.parentId && Math.abs(each.position.x - node.position.x) < 240 && (y(each) - y(node)) * sign > 0);
  column.sort((a, b) => (y(a) - y(b)) * sign);
  return { node: column[0]?.id ?? node.id };
}

/** Where the walk is, and the nodes that stay selected while it goes on. */
let cursor: string | null = null;
let kept = new Set<string>();

/** The selected node at which the walk is. */
export function cursorNode(): FlowNode | undefined {
  const nodes = selectedNodes();
  return nodes.find((node) => node.id === cursor) ?? nodes[0];
}

/** What was kept and is not selected any more was given up, with the mouse or otherwise. */
function stillKept(): Set<string> {
  const selected = new Set(selectedNodes().map((node) => node.id));
  kept = new Set([...kept].filter((id) => selected.has(id)));
  return kept;
}

/** Keep the node of the walk selected while the walk goes on; the second time, let it go. */
export function keepCursor(): void {
  const node = cursorNode();
  if (!node) return;
  cursor = node.id;
  if (!stillKept().delete(node.id)) kept.add(node.id);
}

export const forgetKept = (): void => void (kept = new Set());

export function walk(direction: Direction): void {
  const { nodes, edges } = useFlow.getState();
  const [edge] = selectedEdges();
  const to = stepFrom(nodes, edges, { node: edge ? undefined : cursorNode()?.id, edge: edge?.id }, direction);
  cursor = to.node ?? null;
  selectOnly(new Set([...stillKept(), ...(to.node ? [to.node] : [])]), new Set(to.edge ? [to.edge] : []));
}
