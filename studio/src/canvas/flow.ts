/** Nodes and edges as React Flow has them: made from the scene, moved and selected by the person. */

import { applyEdgeChanges, applyNodeChanges, type Edge, type EdgeChange, type Node, type NodeChange } from "@xyflow/react";
import { create } from "zustand";

import { same } from "../draft/diff";
import { useUi, type Selection } from "../store/ui";
import { nodeId, type NodeInfo } from "./graph";
import { useModel } from "./model";
import type { GroupInfo } from "./grouping";
import type { Scene, SceneEdge, SceneNode } from "./scene";
import { sectionOf } from "../draft/document";

export type EntityData = { info: NodeInfo };
export type GroupData = { group: GroupInfo };
export type ArcData = { edge: SceneEdge };
export type FlowNode = Node<EntityData> | Node<GroupData>;
export type FlowEdge = Edge<ArcData>;

type FlowState = {
  nodes: FlowNode[];
  edges: FlowEdge[];
  /** The edge that a palette entry or box hovers over. */
  target: string | null;
  changeNodes: (changes: NodeChange<FlowNode>[]) => void;
  changeEdges: (changes: EdgeChange<FlowEdge>[]) => void;
};

const typeOf = (node: SceneNode): string => {
  if (node.stub) return "stub";
  // React Flow has styles of its own for types called input, output, group and default.
  if (node.group) return node.open ? "frame" : "closed";
  const kind = node.info?.kind ?? "box";
  if (kind === "output") return "sink";
  return kind === "query" ? "box" : kind === "table" || kind === "view" ? "stream" : kind;
};

/** Frames are lowest, each above the one around it; then come arcs, then cards. No frame is so deep. */
const ARC_Z = 50;
const CARD_Z = 100;

function flowNode(node: SceneNode, before: FlowNode | undefined): FlowNode {
  const type = typeOf(node);
  const data = node.info ? { info: node.info } : { group: node.group as GroupInfo };
  const known = before && before.type === type;
  const sameData = known && ("info" in before.data ? before.data.info === node.info : "group" in data && before.data.group.members === data.group?.members && before.data.group.title === data.group?.title);
  if (
    known &&
    sameData &&
    before.position.x === node.x &&
    before.position.y === node.y &&
    before.width === node.width &&
    before.height === node.height &&
    (before.parentId ?? null) === node.parent
  )
    return before;
  return {
    ...(known ? before : {}),
    id: node.id,
    type,
    data: sameData ? before.data : data,
    position: { x: node.x, y: node.y },
    width: node.width,
    height: node.height,
    ...(node.parent ? { parentId: node.parent } : { parentId: undefined }),
    draggable: type === "stub" ? false : undefined,
    ...(type === "frame" ? { dragHandle: ".frame-title", zIndex: -1 } : { zIndex: CARD_Z }),
  } as FlowNode;
}

function flowEdge(edge: SceneEdge, before: FlowEdge | undefined): FlowEdge {
  const old = before?.data?.edge;
  if (before && old && old.from === edge.from && old.to === edge.to && old.sourcePort === edge.sourcePort && old.targetPort === edge.targetPort && old.index === edge.index && old.first === edge.first && old.shared === edge.shared && same(old.targets, edge.targets))
    return before;
  return {
    id: edge.id,
    type: "arc",
    zIndex: ARC_Z,
    source: edge.from,
    target: edge.to,
    sourceHandle: edge.from === edge.source ? edge.sourcePort : "out",
    targetHandle: edge.to === edge.target ? edge.targetPort : "in",
    data: { edge },
    selected: before?.selected ?? false,
  };
}

function fromScene(scene: Scene, state: FlowState): Pick<FlowState, "nodes" | "edges"> {
  const nodes = new Map(state.nodes.map((node) => [node.id, node]));
  const edges = new Map(state.edges.map((edge) => [edge.id, edge]));
  return {
    nodes: scene.nodes.map((node) => flowNode(node, nodes.get(node.id))),
    edges: scene.edges.map((edge) => flowEdge(edge, edges.get(edge.id))),
  };
}

export const useFlow = create<FlowState>()((set, get) => ({
  nodes: [],
  edges: [],
  target: null,
  changeNodes: (changes) => {
    set({ nodes: applyNodeChanges(changes, get().nodes) });
    if (changes.some((change) => change.type === "select")) tellSelection();
  },
  changeEdges: (changes) => {
    set({ edges: applyEdgeChanges(changes, get().edges) });
    if (changes.some((change) => change.type === "select")) tellSelection();
  },
}));

export function selectionOf(node: FlowNode): Selection {
  if ("group" in node.data) return { kind: "group", name: node.data.group.name };
  return { kind: node.data.info.kind, name: node.data.info.name };
}

export function selectedNodes(): FlowNode[] {
  return useFlow.getState().nodes.filter((node) => node.selected);
}

export function selectedEdges(): FlowEdge[] {
  return useFlow.getState().edges.filter((edge) => edge.selected);
}

/** The person has selected on the canvas: the panels follow. */
function tellSelection(): void {
  queueMicrotask(() => {
    const [node] = selectedNodes();
    const [edge] = selectedEdges();
    const found = node ? selectionOf(node) : edge?.data ? { kind: "arc" as const, name: edge.data.edge.arc } : null;
    const now = useUi.getState().selected;
    if (found?.kind !== now?.kind || found?.name !== now?.name) useUi.getState().select(found);
  });
}

export function selectedId(selected: Selection | null): string | null {
  return selected && selected.kind !== "arc" ? nodeId(sectionOf(selected.kind), selected.name) : null;
}

/** Select on the canvas exactly these nodes and edges. */
export function selectOnly(nodes: Set<string>, edges: Set<string>): void {
  const state = useFlow.getState();
  const mark = <T extends { id: string; selected?: boolean }>(wanted: Set<string>) => (item: T): T =>
    Boolean(item.selected) === wanted.has(item.id) ? item : { ...item, selected: wanted.has(item.id) };
  useFlow.setState({ nodes: state.nodes.map(mark<FlowNode>(nodes)), edges: state.edges.map(mark<FlowEdge>(edges)) });
  tellSelection();
}

/** A panel has selected something: the canvas follows. */
function followSelection(selected: Selection | null): void {
  const { nodes, edges } = useFlow.getState();
  if (selected?.kind === "arc") {
    const marked = edges.filter((edge) => edge.selected && edge.data?.edge.arc === selected.name);
    if (marked.length && !selectedNodes().length) return;
    // The arc as a whole: removing it takes it from everything that reads it.
    const wanted = edges.filter((edge) => edge.data?.edge.arc === selected.name);
    selectWithout(new Set(), new Set(wanted.map((edge) => edge.id)));
    return;
  }
  const id = selectedId(selected);
  if (id && nodes.some((node) => node.id === id && node.selected)) return;
  if (!id && !selectedNodes().length && !selectedEdges().length) return;
  selectWithout(new Set(id ? [id] : []), new Set());
}

function selectWithout(nodes: Set<string>, edges: Set<string>): void {
  const state = useFlow.getState();
  useFlow.setState({
    nodes: state.nodes.map((node) => (Boolean(node.selected) === nodes.has(node.id) ? node : { ...node, selected: nodes.has(node.id) })),
    edges: state.edges.map((edge) => (Boolean(edge.selected) === edges.has(edge.id) ? edge : { ...edge, selected: edges.has(edge.id) })),
  });
}

useModel.subscribe((state, before) => {
  if (state.scene === before.scene) return;
  useFlow.setState(fromScene(state.scene, useFlow.getState()));
  followSelection(useUi.getState().selected);
});
useUi.subscribe((state, before) => {
  if (state.selected !== before.selected) followSelection(state.selected);
});
