/** Which inputs an arc fits. */

import type { ArcInfo, NetworkDocument, PaletteEntry } from "../api/types";
import { ownerOf } from "../draft/arcs";
import { asObject, texts } from "../draft/document";
import type { Graph, InPort, NodeInfo } from "./graph";

/** Everything from which `id` gets tuples, itself included. */
export function upstream(graph: Graph, id: string): Set<string> {
  const found = new Set([id]);
  const stack = [id];
  for (let at = stack.pop(); at !== undefined; at = stack.pop())
    for (const edge of graph.edges)
      if (edge.target === at && !found.has(edge.source)) {
        found.add(edge.source);
        stack.push(edge.source);
      }
  return found;
}

type World = { document: NetworkDocument; graph: Graph; arcs: Record<string, ArcInfo> };

/** Why an arc cannot go into an input; null if it can. */
export function misfit(world: World, arc: string, target: NodeInfo, port: InPort, before?: Set<string>): string | null {
  const source = world.graph.nodes.get(ownerOf(arc));
  if (!source) return "There is no such arc.";
  if ((before ?? upstream(world.graph, source.id)).has(target.id)) return "That would be a cycle.";
  if (source.kind === "query") return target.kind === "output" ? null : "Only outputs read a query.";
  if (source.kind === "table" && target.box !== "join") return "Of the boxes only a join takes a table as input.";
  if (target.box === "union" && port.many) return unionMisfit(world, arc, target);
  const reads = world.graph.edges.find((edge) => edge.target === target.id && edge.targetPort === port.id && !edge.implied);
  if (reads) return `It reads ${reads.arc} already: remove that arc first.`;
  return null;
}

function unionMisfit(world: World, arc: string, target: NodeInfo): string | null {
  const inputs = texts(asObject("boxes", world.document.boxes?.[target.name]).inputs);
  if (inputs.includes(arc)) return "The union reads it already.";
  const own = world.arcs[arc]?.fields;
  const other = inputs.map((input) => world.arcs[input]?.fields).find((fields) => fields !== undefined);
  if (!own || !other) return null;
  const alike = own.length === other.length && own.every((field, at) => field.type === other[at]?.type);
  return alike ? null : "The inputs of a union have the same types.";
}

/** By node the inputs that an arc fits. */
export function fitting(world: World, arc: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  const before = upstream(world.graph, ownerOf(arc));
  for (const node of world.graph.nodes.values())
    for (const port of node.inputs)
      if (misfit(world, arc, node, port, before) === null)
        found.set(node.id, (found.get(node.id) ?? new Set()).add(port.id));
  return found;
}

/** Entries of the palette that can read an arc. */
export function fittingEntries(graph: Graph, palette: PaletteEntry[], arc: string): PaletteEntry[] {
  const source = graph.nodes.get(ownerOf(arc));
  return palette.filter((entry) => {
    if (source?.kind === "query") return entry.section === "outputs";
    if (source?.kind === "table") return entry.kind === "join";
    return entry.inputs !== "none" && entry.section !== "superboxes";
  });
}
