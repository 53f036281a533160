/** What a closed group would hide: problems, drafts and breakpoints inside. */

import { useMemo } from "react";

import { ownerOf } from "../draft/arcs";
import { useLive } from "../store/live";
import type { Graph } from "./graph";
import { around, type Grouping } from "./grouping";
import { useModel } from "./model";

/** The nodes inside a group, through all levels. */
export function nodesInside(graph: Graph, grouping: Grouping, id: string): string[] {
  return [...graph.nodes.keys()].filter((node) => around(grouping, node).includes(id));
}

export function useInside(id: string): { problems: string[]; drafts: number; breakpoints: number } {
  const { graph, grouping, problems, changes } = useModel();
  const inside = useMemo(() => nodesInside(graph, grouping, id), [graph, grouping, id]);
  const breakpoints = useLive((state) => state.picture?.debug.breakpoints.filter((each) => inside.includes(ownerOf(each.arc))).length ?? 0);
  return {
    problems: inside.flatMap((node) => (problems.get(node) ?? []).map((each) => `${each.code}: ${each.detail}`)),
    drafts: inside.filter((node) => changes.has(node)).length,
    breakpoints,
  };
}
