/** Groups of the canvas: those that the network declares, and in large networks those made for it. */

import type { Layout, NetworkDocument } from "../api/types";
import { entries, membersOf, parents } from "../draft/document";
import { nodeId, type Graph } from "./graph";

export const TOP = "";
export const MANY_BOXES = 300;

export type GroupInfo = { id: string; name: string; title: string; declared: boolean; members: number };
/** Groups, and by node or group the group around it. */
export type Grouping = { groups: Map<string, GroupInfo>; parent: Map<string, string> };

/** Declared groups; where too many cards stand outside of them, these are grouped by application. */
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
  const outside = [...groups.keys(), ...graph.nodes.keys()].filter((id) => !parent.has(id));
  if (outside.length > MANY_BOXES) addApplications(graph, groups, parent);
  return { groups, parent };
}

function addApplications(graph: Graph, groups: Map<string, GroupInfo>, parent: Map<string, string>): void {
  const into = new Map<string, string[]>();
  for (const edge of graph.edges) into.set(edge.target, [...(into.get(edge.target) ?? []), edge.source]);
  const seen = new Set<string>();
  for (const output of graph.nodes.values()) {
    if (output.kind !== "output" && output.kind !== "view") continue;
    const id = `application:${output.name}`;
    const members: string[] = [];
    const stack = [output.id];
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      const info = graph.nodes.get(at);
      if (!info || seen.has(at) || info.kind === "stream" || info.kind === "table") continue;
      seen.add(at);
      if (!parent.has(at)) members.push(at);
      stack.push(...(into.get(at) ?? []));
    }
    if (members.length < 2) continue;
    for (const member of members) parent.set(member, id);
    groups.set(id, { id, name: output.name, title: `application ${output.name}`, declared: false, members: members.length });
  }
}

/** By container what is directly in it. */
export function contents(graph: Graph, grouping: Grouping): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const id of [...grouping.groups.keys(), ...graph.nodes.keys()]) {
    const around = grouping.parent.get(id) ?? TOP;
    found.set(around, [...(found.get(around) ?? []), id]);
  }
  return found;
}

/**
 * The groups that are open below `root`: as the person left them, else open unless too many cards would be shown.
 * Then the outermost groups close first, the largest of them before the others, and equally large ones together.
 */
export function openGroups(graph: Graph, grouping: Grouping, layout: Layout, root = TOP): Set<string> {
  const within = contents(graph, grouping);
  const open = new Set([...grouping.groups.keys()].filter((id) => layout.open[id] ?? true));
  const isClosed = (id: string) => grouping.groups.has(id) && !open.has(id);
  const shown = (container: string): number =>
    (within.get(container) ?? []).reduce((all, id) => all + (!grouping.groups.has(id) || isClosed(id) ? 1 : shown(id)), 0);
  for (let total = shown(root); total > MANY_BOXES; total = shown(root)) {
    let level = [root];
    let candidates: string[] = [];
    while (level.length && !candidates.length) {
      level = level.flatMap((id) => (within.get(id) ?? []).filter((each) => open.has(each)));
      candidates = level.filter((id) => layout.open[id] === undefined && shown(id) > 1);
    }
    const largest = Math.max(...candidates.map(shown));
    const closing = candidates.filter((id) => shown(id) === largest);
    if (!closing.length) break;
    for (const id of closing) open.delete(id);
  }
  return open;
}

/** The groups around a node, outermost first. */
export function around(grouping: Grouping, id: string): string[] {
  const found: string[] = [];
  for (let at = grouping.parent.get(id); at !== undefined; at = grouping.parent.get(at)) found.unshift(at);
  return found;
}
