/** The network as nodes and edges, without positions. */

import type { CheckReport, Declaration, NetworkDocument, PaletteEntry, Section } from "../api/types";
import { arcOf, ownerOf, portOf } from "../draft/arcs";
import { asObject, entries, kindOf, texts } from "../draft/document";
import { sourcesOf } from "../draft/sql";
import { tellingOf } from "../draft/telling";
import type { EntityKind } from "../store/ui";

/** An input of a node; `index` is its place in `inputs`. */
export type InPort = { id: string; label: string; index: number; many: boolean };
export type OutPort = { id: string; label: string; arc: string };
export type NodeKind = Exclude<EntityKind, "arc">;
export type NodeInfo = {
  id: string;
  kind: NodeKind;
  section: Section;
  name: string;
  /** Kind of a box, such as `filter`, or name of its superbox. */
  box: string;
  telling: string;
  inputs: InPort[];
  outputs: OutPort[];
};
export type EdgeInfo = {
  id: string;
  arc: string;
  source: string;
  sourcePort: string;
  target: string;
  targetPort: string;
  index: number;
  /** Reads or writes of tables and queries that only their SQL names: drawn, not dragged. */
  implied: boolean;
};
export type Graph = { nodes: Map<string, NodeInfo>; edges: EdgeInfo[] };

export const nodeId = (section: Section, name: string): string =>
  section === "outputs" ? `output:${name}` : section === "groups" ? `group:${name}` : name;

const PAIRS: Record<string, string[]> = {
  join: ["left", "right"],
  resample: ["left", "right"],
  wait_for: ["held", "signal"],
};
const LATE: Record<string, string[]> = {
  aggregate: ["late"],
  bsort: ["late"],
  dedup: ["late"],
  wait_for: ["late"],
  join: ["left_late", "right_late"],
  resample: ["left_late", "right_late"],
};

const SINGLE: InPort[] = [{ id: "in", label: "", index: 0, many: false }];

/** Names of a superbox's inputs, in their order. */
function templateInputs(template: Declaration): string[] {
  const { inputs } = template;
  return Array.isArray(inputs) ? texts(inputs) : Object.keys((inputs ?? {}) as object);
}

export function inputPorts(document: NetworkDocument, section: Section, declaration: Declaration): InPort[] {
  if (section === "streams" || section === "tables" || section === "queries" || section === "groups") return [];
  if (section === "connection_points") return declaration.store === undefined ? SINGLE : [];
  if (section !== "boxes") return SINGLE;
  const kind = String(declaration.box);
  if (kind === "union") return [{ id: "in", label: "", index: 0, many: true }];
  const template = document.superboxes?.[kind];
  const names = PAIRS[kind] ?? (template ? templateInputs(asObject("superboxes", template)) : []);
  if (names.length < 2) return SINGLE;
  return names.map((name, index) => ({ id: `in${index}`, label: name, index, many: false }));
}

function plannedPorts(document: NetworkDocument, section: Section, declaration: Declaration): string[] {
  if (section === "streams") {
    const { progress } = declaration;
    const all = Array.isArray(progress) ? progress : [progress];
    return all.some((each) => each && typeof each === "object" && "below" in each) ? ["", "late"] : [""];
  }
  if (section !== "boxes") return [""];
  const kind = String(declaration.box);
  if (kind === "filter")
    return declaration.routes && typeof declaration.routes === "object"
      ? [...Object.keys(declaration.routes), "rest"]
      : ["", "rest"];
  const template = asObject("superboxes", document.superboxes?.[kind]);
  if (typeof template.outputs === "object" && template.outputs !== null)
    return Object.keys(template.outputs).map((port, _, all) => (port === "out" || all.length === 1 ? "" : port));
  return ["", ...(LATE[kind] ?? [])];
}

/** Output ports: those that the check has typed, else those that the declaration promises. */
export function outputPorts(
  document: NetworkDocument,
  section: Section,
  name: string,
  declaration: Declaration,
  typed: Map<string, string[]>,
): OutPort[] {
  if (section === "outputs" || section === "groups" || section === "views") return [];
  const template = section === "boxes" ? document.superboxes?.[String(declaration.box)] : undefined;
  // The arc `x.out` of an instance is the arc `x`.
  const known = section === "boxes" ? typed.get(name)?.filter((port, _, all) => !template || port !== "out" || !all.includes("")) : undefined;
  const planned = plannedPorts(document, section, declaration);
  const ports = known ? [...new Set([...planned.filter((port) => known.includes(port)), ...known])] : planned;
  const plain = declaration.box === "filter" ? "matched" : "";
  return ports.map((port) => ({
    id: `out${port ? `.${port}` : ""}`,
    label: port ? port.replace("_", " ") : plain,
    arc: arcOf(name, port),
  }));
}

/** By owner the ports of the arcs that the check could type. */
function typedPorts(report: CheckReport | null): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const arc of Object.keys(report?.arcs ?? {})) {
    if (arc.includes("/")) continue;
    const owner = ownerOf(arc);
    found.set(owner, [...(found.get(owner) ?? []), portOf(arc)]);
  }
  return found;
}

const SHOWN: Section[] = ["streams", "tables", "boxes", "queries", "connection_points", "views", "outputs"];

export function graphOf(document: NetworkDocument, report: CheckReport | null, palette: PaletteEntry[]): Graph {
  const nodes = new Map<string, NodeInfo>();
  const edges: EdgeInfo[] = [];
  const typed = typedPorts(report);
  const told = new Map(palette.map((entry) => [entry.kind, entry.telling]));
  for (const section of SHOWN)
    for (const [name, value] of entries(document, section)) {
      const declaration = asObject(section, value);
      const id = nodeId(section, name);
      nodes.set(id, {
        id,
        kind: kindOf(section) as NodeKind,
        section,
        name,
        box: section === "boxes" ? String(declaration.box ?? "box") : "",
        telling: tellingOf(section, declaration, told.get(String(declaration.box))),
        inputs: inputPorts(document, section, declaration),
        outputs: outputPorts(document, section, name, declaration, typed),
      });
    }
  const used = new Set<string>();
  const add = (arc: string, target: string, targetPort: string, index: number, implied: boolean) => {
    const source = nodes.get(ownerOf(arc));
    if (!source || source.id === target) return;
    const port = source.outputs.find((each) => each.arc === arc) ?? source.outputs[0];
    let id = `${arc}-${nodes.get(target)?.name ?? target}`;
    if (used.has(id)) id = `${id}-${index}`;
    if (used.has(id)) id = `${arc}-${target}-${index}`;
    if (used.has(id)) return;
    used.add(id);
    edges.push({ id, arc, source: source.id, sourcePort: port?.id ?? "out", target, targetPort, index, implied });
  };
  for (const node of nodes.values()) addInputs(document, node, add);
  return { nodes, edges };
}

type Add = (arc: string, target: string, port: string, index: number, implied: boolean) => void;

function addInputs(document: NetworkDocument, node: NodeInfo, add: Add): void {
  const declaration = asObject(node.section, document[node.section]?.[node.name]);
  const port = (index: number) => node.inputs[node.inputs[0]?.many ? 0 : index]?.id ?? "in";
  const single = declaration[node.section === "boxes" ? "input" : node.section === "connection_points" ? "on" : "from"];
  if (typeof single === "string" && node.section !== "queries") add(single, node.id, port(0), 0, false);
  const { inputs } = declaration;
  if (Array.isArray(inputs)) texts(inputs).forEach((arc, index) => add(arc, node.id, port(index), index, false));
  else if (inputs && typeof inputs === "object")
    Object.entries(inputs).forEach(([name, arc]) => {
      const index = node.inputs.find((each) => each.label === name)?.index ?? 0;
      if (typeof arc === "string") add(arc, node.id, port(index), index, false);
    });
  if (typeof declaration.table === "string" && document.tables?.[declaration.table] !== undefined)
    add(node.name, declaration.table, "in", 0, true);
  if (typeof declaration.sql === "string" && (node.section === "queries" || node.section === "boxes"))
    sourcesOf(declaration.sql).forEach(({ name }, index) => add(name, node.id, "in", index, true));
}
