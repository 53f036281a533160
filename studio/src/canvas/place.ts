/** Where nodes without a position go: all at once by ELK, single ones beside what they read. */

import type { ELK, ElkNode } from "elkjs/lib/elk-api";

import type { Layout } from "../api/types";
import type { Graph } from "./graph";
import { TOP, type Grouping } from "./grouping";
import { FRAME, sizeOf } from "./scene";

type Positions = Layout["positions"];
type Link = { source: string; target: string; sourcePort: string; targetPort: string };

/** The item of a container that a node is in; null if it is elsewhere. */
function itemOf(grouping: Grouping, container: string, id: string): string | null {
  for (let at: string | undefined = id; at !== undefined; ) {
    const around: string | undefined = grouping.parent.get(at);
    if ((around ?? TOP) === container) return at;
    at = around;
  }
  return null;
}

export function linksIn(graph: Graph, grouping: Grouping, container: string): Link[] {
  return graph.edges.flatMap((edge) => {
    const source = itemOf(grouping, container, edge.source);
    const target = itemOf(grouping, container, edge.target);
    if (!source || !target || source === target) return [];
    return [{ source, target, sourcePort: edge.sourcePort, targetPort: edge.targetPort }];
  });
}

export function itemsIn(graph: Graph, grouping: Grouping, container: string): string[] {
  return [...grouping.groups.keys(), ...graph.nodes.keys()].filter(
    (id) => (grouping.parent.get(id) ?? TOP) === container,
  );
}

export const GAP = { x: 60, y: 32 };

/** Put each of `missing` to the right of what it reads, or left of what reads it, where it is free. */
export function placeBeside(graph: Graph, grouping: Grouping, container: string, positions: Positions, missing: string[]): Positions {
  const made: Positions = {};
  const at = (id: string) => made[id] ?? positions[id];
  const size = (id: string) => sizeOf(graph.nodes.get(id) ?? null);
  const items = itemsIn(graph, grouping, container);
  const links = linksIn(graph, grouping, container);
  const free = (x: number, y: number, id: string) => {
    const own = size(id);
    return items.every((other) => {
      const there = other === id ? undefined : at(other);
      if (!there) return true;
      const its = size(other);
      return x >= there[0] + its.width + 16 || x + own.width + 16 <= there[0] || y >= there[1] + its.height + 8 || y + own.height + 8 <= there[1];
    });
  };
  for (const id of missing) {
    const before = links.filter((link) => link.target === id).map((link) => link.source).find(at);
    const after = links.filter((link) => link.source === id).map((link) => link.target).find(at);
    const placed = items.filter(at);
    let [x, y] = [FRAME.side, FRAME.top];
    if (before) [x, y] = [(at(before)?.[0] ?? 0) + size(before).width + GAP.x, at(before)?.[1] ?? 0];
    else if (after) [x, y] = [(at(after)?.[0] ?? 0) - size(id).width - GAP.x, at(after)?.[1] ?? 0];
    else if (placed.length) y = Math.max(...placed.map((each) => (at(each)?.[1] ?? 0) + size(each).height)) + GAP.y;
    while (!free(x, y, id)) y += 24;
    made[id] = [Math.round(x), Math.round(y)];
  }
  return made;
}

let engine: Promise<ELK> | null = null;

/** ELK in a worker of its own, loaded when it is first needed. */
function elk(): Promise<ELK> {
  engine ??= Promise.all([import("elkjs/lib/elk-api"), import("elkjs/lib/elk-worker.min.js?worker")]).then(
    ([{ default: Elk }, { default: Worker }]) => new Elk({ workerFactory: () => new Worker() }),
  );
  return engine;
}

/** Load ELK while the page waits for the network. */
export const warmUp = (): void => void elk();

/** Open groups are wide: where more than this share of the items are, several columns would be wider than they are worth. */
const FEW_OPEN = 0.1;

/** Lay out a whole container from left to right; `open` are groups that will be shown open. */
export async function placeAll(graph: Graph, grouping: Grouping, container: string, open: Set<string>): Promise<Positions> {
  const drawn = elkGraph(graph, grouping, container);
  const items = drawn.children ?? [];
  const closed = items.filter((item) => open.has(item.id)).length <= FEW_OPEN * items.length;
  const run = async (wanted: ElkNode) => (await elk()).layout(wanted);
  const found = await (closed ? laidOut(drawn, run) : run(drawn));
  return Object.fromEntries(
    (found.children ?? []).map((child): [string, [number, number]] => [
      child.id,
      [Math.round((child.x ?? 0) / 4) * 4, Math.round((child.y ?? 0) / 4) * 4],
    ]),
  );
}

/** A source with so many readers stands apart from them if all below each other would be a narrow column. */
const MANY_READERS = 6;
/** How many times as high as wide a narrow column is; open groups make less narrow ones wide enough. */
const NARROW = 3;
const ASPECT = 1.8;

/** What a view of the canvas's proportions needs to show a drawing. */
const extent = ({ width = 0, height = 0 }: ElkNode): number => Math.max(width / ASPECT, height);

/** The layout by `run`; where that is a tall column behind a few sources, what they feed fills several columns instead. */
export async function laidOut(drawn: ElkNode, run: (drawn: ElkNode) => Promise<ElkNode>): Promise<ElkNode> {
  const plain = await run(structuredClone(drawn));
  if ((plain.height ?? 0) < NARROW * (plain.width ?? 0)) return plain;
  const sources = sourcesOfMany(drawn);
  if (!sources.size) return plain;
  const rest = (drawn.children ?? []).filter((child) => !sources.has(child.id));
  const inner = (drawn.edges ?? []).filter((edge) => !sources.has(nodeOf(edge.sources[0])));
  const packed = await run({ ...drawn, children: rest, edges: inner });
  const column = (plain.children ?? []).filter((child) => sources.has(child.id)).sort((one, other) => (one.y ?? 0) - (other.y ?? 0));
  const room = Math.max(...column.map((child) => child.width ?? 0)) + 2 * GAP.x;
  const wide = { ...packed, width: (packed.width ?? 0) + room };
  if (extent(wide) > 0.8 * extent(plain)) return plain;
  const step = (packed.height ?? 0) / column.length;
  const aside = column.map((child, at) => ({ ...child, x: FRAME.side, y: Math.max(FRAME.top, (at + 0.5) * step - (child.height ?? 0) / 2) }));
  return { ...wide, children: [...aside, ...(packed.children ?? []).map((child) => ({ ...child, x: (child.x ?? 0) + room }))] };
}

const nodeOf = (end = ""): string => end.split("|")[0] ?? end;

/** What nothing leads to, and many read. */
function sourcesOfMany(drawn: ElkNode): Set<string> {
  const readers = new Map<string, Set<string>>();
  const fed = new Set<string>();
  for (const { sources, targets } of drawn.edges ?? []) {
    const [from, to] = [nodeOf(sources[0]), nodeOf(targets[0])];
    readers.set(from, (readers.get(from) ?? new Set()).add(to));
    fed.add(to);
  }
  return new Set([...readers].filter(([id, all]) => all.size >= MANY_READERS && !fed.has(id)).map(([id]) => id));
}

export function elkGraph(graph: Graph, grouping: Grouping, container: string): ElkNode {
  const items = itemsIn(graph, grouping, container);
  const ports = (id: string) => {
    const info = graph.nodes.get(id);
    if (!info) return {};
    const side = (name: string, port: string, index: number) => ({
      id: `${id}|${port}`,
      layoutOptions: { "elk.port.side": name, "elk.port.index": String(index) },
    });
    return {
      ports: [
        ...info.outputs.map((port, index) => side("EAST", port.id, index)),
        // Ports of the west side count from below.
        ...info.inputs.map((port, index) => side("WEST", port.id, info.outputs.length + info.inputs.length - index)),
      ],
      layoutOptions: { "elk.portConstraints": "FIXED_ORDER" },
    };
  };
  const known = new Set(items.flatMap((id) => (ports(id).ports ?? []).map((port) => port.id)));
  const end = (id: string, port: string) => (known.has(`${id}|${port}`) ? `${id}|${port}` : id);
  return {
    id: "root",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": "RIGHT",
      "elk.padding": `[top=${FRAME.top},left=${FRAME.side},bottom=${FRAME.bottom},right=${FRAME.side}]`,
      "elk.spacing.nodeNode": String(GAP.y),
      "elk.layered.spacing.nodeNodeBetweenLayers": String(GAP.x),
      "elk.spacing.componentComponent": "48",
      "elk.aspectRatio": String(ASPECT),
      "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF",
      "elk.layered.nodePlacement.bk.fixedAlignment": "BALANCED",
      "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
      "elk.layered.considerModelOrder.components": "MODEL_ORDER",
    },
    children: items.map((id) => ({ id, ...sizeOf(graph.nodes.get(id) ?? null), ...ports(id) })),
    edges: linksIn(graph, grouping, container).map((link, index) => ({
      id: `e${index}`,
      sources: [end(link.source, link.sourcePort)],
      targets: [end(link.target, link.targetPort)],
    })),
  };
}
