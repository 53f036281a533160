/** What a person does on the canvas; every action is one edit of the draft. */

import type { PaletteEntry } from "../api/types";
import { asObject, freeName, kindOf, membersOf, type Ref } from "../draft/document";
import { ownerOf } from "../draft/arcs";
import { startingDeclaration, stemOf } from "../draft/adding";
import { connect, disconnect, group, copy, paste, put, remove, setKey, splice, ungroup, type Clip } from "../draft/edits";
import { moveInto } from "../draft/members";
import { useDraft } from "../store/draft";
import { useUi } from "../store/ui";
import { fitsOf } from "./connecting";
import { selectedEdges, selectedNodes, selectOnly, useFlow, type FlowNode } from "./flow";
import { focus } from "./focus";
import { nodeId, type EdgeInfo, type OutPort } from "./graph";
import { toggleGroup } from "./groups";
import { commonGroup, containerAt, declaredName, placeIn, regroup } from "./membership";
import { useModel } from "./model";
import { GAP } from "./place";
import { sizeOf, undisplaced } from "./scene";
import { bringIntoView } from "./viewport";

export type Point = { x: number; y: number };

const refOfNode = (node: FlowNode): Ref =>
  "group" in node.data
    ? { section: "groups", name: node.data.group.name }
    : { section: node.data.info.section, name: node.data.info.name };

function inputOf(edge: EdgeInfo): (Ref & { index: number }) | null {
  const info = useModel.getState().graph.nodes.get(edge.target);
  return info ? { section: info.section, name: info.name, index: edge.index } : null;
}

/** Select something new and bring it into view; the canvas follows as soon as it has its place. */
function show(ref: Ref): void {
  const kind = kindOf(ref.section);
  if (!kind) return;
  useUi.getState().select({ kind, name: ref.name });
  bringIntoView(nodeId(ref.section, ref.name));
}

/** The group of what an arc comes from, else the one that is shown alone. */
function groupBehind(arc: string | undefined): string | null {
  const group = arc === undefined ? undefined : useModel.getState().grouping.parent.get(ownerOf(arc));
  return group ?? focus();
}

/** Declare a new entity; it reads `arc` if given, and stands at `at` or beside what it reads. */
export function addEntry(entry: PaletteEntry, options: { arc?: string; at?: Point } = {}): Ref {
  const { draft, report, edit } = useDraft.getState();
  const name = freeName(draft, entry.section, stemOf(entry));
  const ref: Ref = { section: entry.section, name };
  const { arc } = options;
  const declaration = startingDeclaration(entry, arc ? report?.arcs[arc] : undefined);
  const id = nodeId(ref.section, name);
  const container = entry.section !== "boxes" ? null : options.at ? containerAt(options.at) : groupBehind(arc);
  edit(
    (document) => {
      const declaring = put(document, ref, entry.section === "queries" && arc ? { sql: `SELECT * FROM ${/[/]/.test(arc) ? `\`${arc}\`` : arc}` } : declaration);
      const group = declaredName(container);
      const made = group ? moveInto(declaring, [name], group) : declaring;
      return arc && entry.section !== "queries" ? connect(made, arc, { ...ref, index: 0 }) : made;
    },
    options.at ? { place: placeIn(container, id, options.at) } : {},
  );
  show(ref);
  useUi.getState().openInspector("parameters");
  return ref;
}

/** Put a new box into an arc, between the two that it connects. */
export function spliceEntry(entry: PaletteEntry, edge: EdgeInfo, at?: Point): void {
  const target = inputOf(edge);
  if (!target || entry.section !== "boxes" || edge.implied) return;
  const { draft, report, edit } = useDraft.getState();
  const name = freeName(draft, "boxes", stemOf(entry));
  const declaration = startingDeclaration(entry, report?.arcs[edge.arc]);
  const container = commonGroup(edge.source, edge.target) ?? (at ? containerAt(at) : null);
  const group = declaredName(container);
  edit(
    (document) => {
      const made = splice(document, edge.arc, target, name, declaration);
      return group ? moveInto(made, [name], group) : made;
    },
    { place: placeBetween(edge, name, container, at) },
  );
  show({ section: "boxes", name });
  useUi.getState().openInspector("parameters");
}

/** The place of a box between the ends of an arc; what stands to the right moves on if there is no room. */
function placeBetween(edge: EdgeInfo, name: string, container: string | null, at?: Point): Record<string, [number, number]> {
  const { grouping } = useModel.getState();
  const { positions } = useDraft.getState().layout;
  const [from, to] = [positions[edge.source], positions[edge.target]];
  const isHere = (id: string) => (grouping.parent.get(id) ?? null) === container;
  if (!from || !to || !isHere(edge.source) || !isHere(edge.target)) return at ? placeIn(container, name, at) : {};
  const source = sizeOf(useModel.getState().graph.nodes.get(edge.source) ?? null);
  const left = from[0] + source.width + GAP.x;
  const needed = left + sizeOf(null).width + GAP.x - to[0];
  const made: Record<string, [number, number]> = { [name]: [left, Math.round((from[1] + to[1]) / 2)] };
  if (needed > 0)
    for (const [id, [x, y]] of Object.entries(positions))
      if (x >= to[0] && id !== edge.source && isHere(id)) made[id] = [x + needed, y];
  return made;
}

/** Put a box that is there already into an arc. */
export function spliceNode(id: string, edge: EdgeInfo): void {
  const target = inputOf(edge);
  const info = useModel.getState().graph.nodes.get(id);
  if (target && info?.kind === "box") useDraft.getState().edit((document) => splice(document, edge.arc, target, info.name));
}

/** Whether a box has no wires yet, so that dropping it on an arc splices it in. */
export function isLoose(id: string): boolean {
  const { graph } = useModel.getState();
  const info = graph.nodes.get(id);
  return info?.kind === "box" && info.inputs.length === 1 && !graph.edges.some((edge) => edge.source === id || edge.target === id);
}

/** Add without dragging: into the selected wire, else as a reader of the selected arc or of the selected node's first one. */
export function addHere(entry: PaletteEntry): void {
  const [edge, ...others] = selectedEdges();
  if (edge?.data && !others.length && !selectedNodes().length && entry.section === "boxes" && entry.inputs === "one" && !edge.data.edge.implied && inputOf(edge.data.edge)) {
    spliceEntry(entry, edge.data.edge);
    return;
  }
  const arc = selectedArc();
  const fits = arc !== null && entry.inputs !== "none" && entry.section !== "superboxes";
  addEntry(entry, fits ? { arc } : {});
}

/** The ports that a wire can begin at: the selected arc, or those of the selected node. */
export function selectedPorts(): OutPort[] {
  const [node] = selectedNodes();
  if (node) return "info" in node.data ? node.data.info.outputs : [];
  const arc = selectedArc();
  return arc ? [{ id: "out", label: "", arc }] : [];
}

/** The arc that the selection stands for. */
export function selectedArc(): string | null {
  const [edge] = selectedEdges();
  if (edge?.data) return edge.data.edge.arc;
  const [node] = selectedNodes();
  return node && "info" in node.data ? (node.data.info.outputs[0]?.arc ?? null) : null;
}

export function connectTo(arc: string, id: string, port: string): void {
  const info = useModel.getState().graph.nodes.get(id);
  const input = info?.inputs.find((each) => each.id === port);
  if (!info || !input || !fitsOf(arc).get(id)?.has(port)) return;
  const ref = { section: info.section, name: info.name, index: input.index };
  useDraft.getState().edit((document) => {
    const before = asObject(info.section, document[info.section]?.[info.name]);
    const qualified = info.section === "boxes" && before.inputs === undefined && info.inputs.length > 1;
    const ready = qualified ? setKey(document, ref, ["inputs"], info.inputs.map(() => "")) : document;
    return connect(ready, arc, ref, info.inputs.map((each) => each.label));
  });
}

/** Remove what is selected: nodes with their wires, or wires alone. */
export function removeSelected(): void {
  const nodes = selectedNodes();
  const edges = selectedEdges().flatMap((edge) => (edge.data && !edge.data.edge.implied ? [edge.data.edge] : []));
  const refs = nodes.filter((node) => !("group" in node.data) || node.data.group.declared).map(refOfNode);
  if (!refs.length && !edges.length) return;
  useDraft.getState().edit((document) => {
    let made = document;
    // From the last input on, so that the places of the others in the list stay right.
    for (const edge of [...edges].sort((a, b) => b.index - a.index)) {
      const target = inputOf(edge);
      if (target) made = disconnect(made, edge.arc, target);
    }
    for (const ref of refs) if (ref.section === "groups") made = ungroup(made, ref.name);
    return remove(made, refs.filter((ref) => ref.section !== "groups"));
  });
  useUi.getState().select(null);
}

/** Group what is selected; a single group is opened or closed. */
export function groupSelected(): void {
  const nodes = selectedNodes();
  const [only] = nodes;
  if (nodes.length === 1 && only && "group" in only.data) {
    toggleGroup(only.id);
    return;
  }
  const members = nodes.flatMap((node) =>
    "group" in node.data ? (node.data.group.declared ? [node.data.group.name] : []) : node.data.info.kind === "box" ? [node.data.info.name] : [],
  );
  if (!members.length) return;
  const { draft, edit, layout } = useDraft.getState();
  const name = freeName(draft, "groups", "group");
  const id = nodeId("groups", name);
  const left = Math.min(...nodes.map((node) => node.position.x));
  const top = Math.min(...nodes.map((node) => node.position.y));
  const place: Record<string, [number, number]> = { [id]: undisplaced(useModel.getState().scene, layout, id, left - 24, top - 40) };
  for (const node of nodes) if (members.includes(refOfNode(node).name)) place[node.id] = [node.position.x - left + 24, node.position.y - top + 40];
  edit((document) => group(document, name, members), { place });
  show({ section: "groups", name });
}

export function ungroupNamed(name: string): void {
  const { layout, edit, draft } = useDraft.getState();
  const [x, y] = layout.positions[nodeId("groups", name)] ?? [0, 0];
  const place: Record<string, [number, number]> = {};
  for (const member of membersOf(draft, name)) {
    const id = draft.groups?.[member] !== undefined ? nodeId("groups", member) : member;
    const at = layout.positions[id];
    if (at) place[id] = [at[0] + x, at[1] + y];
  }
  edit((document) => ungroup(document, name), { place });
}

// ── the clipboard ──

let clip: { content: Clip; at: Record<string, [number, number]> } | null = null;

export function copySelected(): Clip {
  const { draft, layout } = useDraft.getState();
  const refs = selectedNodes().map(refOfNode);
  const at: Record<string, [number, number]> = {};
  for (const ref of refs) {
    const id = nodeId(ref.section, ref.name);
    const found = layout.positions[id];
    if (found) at[id] = found;
  }
  const content = copy(draft, refs);
  if (content.length) clip = { content, at };
  return content;
}

export function pasteCopied(content = clip?.content): void {
  if (!content?.length) return;
  const { draft, edit } = useDraft.getState();
  const made = paste(draft, content);
  const place: Record<string, [number, number]> = {};
  made.refs.forEach((ref, index) => {
    const from = content[index]?.ref;
    const at = from && clip?.at[nodeId(from.section, from.name)];
    if (at) place[nodeId(ref.section, ref.name)] = [at[0] + 40, at[1] + 40];
  });
  edit(() => made.document, { place });
  queueMicrotask(() => selectOnly(new Set(made.refs.map((ref) => nodeId(ref.section, ref.name))), new Set()));
}

// ── moving ──

/** Keep where nodes were dragged to, and in which groups; a node that reaches over its frame to the left or top widens it. */
export function keepPositions(dragged: FlowNode[]): void {
  const joined = regroup(dragged);
  const moved = dragged.filter((node) => !joined.has(node.id));
  if (!moved.length) return;
  const { scene, grouping } = useModel.getState();
  const { layout, setLayout } = useDraft.getState();
  const positions = { ...layout.positions };
  for (const node of moved) positions[node.id] = undisplaced(scene, layout, node.id, node.position.x, node.position.y);
  for (const parent of new Set(moved.flatMap((node) => node.parentId ?? []))) {
    const members = [...grouping.parent].filter(([, around]) => around === parent).map(([id]) => id);
    const known = members.flatMap((id) => positions[id] ?? []);
    if (!known.length) continue;
    const dx = Math.max(0, 24 - Math.min(...members.map((id) => positions[id]?.[0] ?? Infinity)));
    const dy = Math.max(0, 40 - Math.min(...members.map((id) => positions[id]?.[1] ?? Infinity)));
    if (!dx && !dy) continue;
    for (const id of members) {
      const at = positions[id];
      if (at) positions[id] = [at[0] + dx, at[1] + dy];
    }
    const own = positions[parent];
    if (own) positions[parent] = [own[0] - dx, own[1] - dy];
  }
  setLayout({ positions }, { history: true });
}

export function nudgeSelected(dx: number, dy: number): void {
  const moved = selectedNodes().map((node) => ({ ...node, position: { x: node.position.x + dx, y: node.position.y + dy } }));
  if (moved.length) keepPositions(moved as FlowNode[]);
}

/** Lay everything out anew. */
export function tidyUp(): void {
  const { layout, setLayout } = useDraft.getState();
  const kept = Object.fromEntries(Object.entries(layout.positions).filter(([id]) => !useModel.getState().graph.nodes.has(id) && !useModel.getState().grouping.groups.has(id)));
  setLayout({ positions: kept }, { history: true });
  useUi.getState().ask({ kind: "fit" });
}

export const edgeOf = (id: string): EdgeInfo | null => useFlow.getState().edges.find((edge) => edge.id === id)?.data?.edge ?? null;
