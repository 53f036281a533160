/** What the canvas draws, derived from the draft outside of React; equal parts keep their identity. */

import { create } from "zustand";

import type { Problem } from "../api/types";
import { problemsOf } from "../draft/saying";
import { same } from "../draft/diff";
import { entries, SECTIONS, type Ref } from "../draft/document";
import { useDraft, type DraftState, type Positions } from "../store/draft";
import { useSession } from "../store/session";
import { graphOf, nodeId, type EdgeInfo, type Graph, type NodeInfo } from "./graph";
import { placeAll, placeBeside, itemsIn } from "./place";
import { focus, useFocus } from "./focus";
import { groupingOf, type Grouping } from "./grouping";
import { sceneOf, type Scene } from "./scene";

type CanvasModel = {
  graph: Graph;
  grouping: Grouping;
  scene: Scene;
  /** By node what is wrong with it. */
  problems: Map<string, Problem[]>;
  /** By node how it differs from what runs. */
  changes: Map<string, "added" | "changed">;
  /** The first layout is there. */
  placed: boolean;
};

const EMPTY_GRAPH: Graph = { nodes: new Map(), edges: [] };
const EMPTY_GROUPING: Grouping = { groups: new Map(), parent: new Map() };

export const useModel = create<CanvasModel>()(() => ({
  graph: EMPTY_GRAPH,
  grouping: EMPTY_GROUPING,
  scene: { nodes: [], edges: [], open: new Set(), missing: new Map() },
  problems: new Map(),
  changes: new Map(),
  placed: false,
}));

/** `made` with the nodes and edges of `before` where they are equal. */
function stable(before: Graph, made: Graph): Graph {
  const edges = new Map(before.edges.map((edge) => [edge.id, edge]));
  const keep = <T,>(old: T | undefined, fresh: T): T => (old && same(old, fresh) ? old : fresh);
  return {
    nodes: new Map([...made.nodes].map(([id, node]): [string, NodeInfo] => [id, keep(before.nodes.get(id), node)])),
    edges: made.edges.map((edge): EdgeInfo => keep(edges.get(edge.id), edge)),
  };
}

/** Problems by node: by the path in the document, else by the name in `where`. */
export function problemsByNode(state: Pick<DraftState, "report" | "draft" | "refusal">): Map<string, Problem[]> {
  const found = new Map<string, Problem[]>();
  for (const problem of problemsOf(state.report, state.refusal)) {
    const ref = problemRef(state.draft, problem);
    if (!ref) continue;
    const id = nodeId(ref.section, ref.name);
    found.set(id, [...(found.get(id) ?? []), problem]);
  }
  return found;
}

export function problemRef(document: DraftState["draft"], problem: Problem): Ref | null {
  const [section, name] = problem.path ?? [];
  const known = SECTIONS.find((each) => each === section);
  if (known && typeof name === "string") return { section: known, name };
  const said = problem.where?.match(/\b(stream|table|superbox|box|query|connection point|view|group|output) (\w+)/);
  if (!said) return null;
  for (const each of SECTIONS)
    for (const [declared] of entries(document, each))
      if (declared === said[2] && each.startsWith((said[1] ?? "").slice(0, 4).replace("conn", "connection").replace("quer", "queries")))
        return { section: each, name: declared };
  return null;
}

let busy = false;

/** Give positions to what has none; ELK only where a container has none at all. */
async function placeMissing(): Promise<void> {
  if (busy) return;
  busy = true;
  try {
    for (;;) {
      const { graph, grouping, scene } = useModel.getState();
      if (!scene.missing.size) break;
      const made: Positions = {};
      const whole: Promise<Positions>[] = [];
      for (const [container, missing] of scene.missing)
        if (itemsIn(graph, grouping, container).length === missing.length) whole.push(placeAll(graph, grouping, container, scene.open));
        else Object.assign(made, placeBeside(graph, grouping, container, useDraft.getState().layout.positions, missing));
      if (whole.length) Object.assign(made, ...(await Promise.all(whole)));
      if (!Object.keys(made).length) break;
      const now = useDraft.getState().layout;
      // What the person has placed meanwhile stays there.
      useDraft.getState().setLayout({ positions: { ...made, ...now.positions } }, { automatic: true });
    }
  } finally {
    busy = false;
  }
  if (useDraft.getState().loaded) useModel.setState({ placed: true });
}

function rebuild(state: DraftState, before: DraftState | null): void {
  if (!state.loaded) return;
  const model = useModel.getState();
  const change: Partial<CanvasModel> = {};
  let { graph, grouping } = model;
  if (!before || state.draft !== before.draft || state.report !== before.report || state.refusal !== before.refusal) {
    graph = stable(model.graph, graphOf(state.draft, state.report, useSession.getState().palette));
    grouping = groupingOf(state.draft, graph);
    Object.assign(change, { graph, grouping, problems: problemsByNode(state) });
  }
  if (!before || state.diff !== before.diff)
    change.changes = new Map([
      ...state.diff.added.map((ref): [string, "added"] => [nodeId(ref.section, ref.name), "added"]),
      ...state.diff.changed.map((ref): [string, "changed"] => [nodeId(ref.section, ref.name), "changed"]),
    ]);
  if (change.grouping && useFocus.getState().path.some((id) => !grouping.groups.has(id))) useFocus.setState({ path: [] });
  if (change.graph || state.layout !== before?.layout) change.scene = sceneOf(graph, grouping, state.layout, focus());
  useModel.setState(change);
  if (change.scene) void placeMissing();
}

useDraft.subscribe((state, before) => {
  if (state.draft !== before.draft || state.report !== before.report || state.refusal !== before.refusal || state.layout !== before.layout || state.diff !== before.diff || state.loaded !== before.loaded)
    rebuild(state, state.loaded === before.loaded ? before : null);
});
useSession.subscribe((state, before) => {
  if (state.palette !== before.palette) rebuild(useDraft.getState(), null);
});
useFocus.subscribe(() => {
  const { graph, grouping } = useModel.getState();
  useModel.setState({ scene: sceneOf(graph, grouping, useDraft.getState().layout, focus()) });
  void placeMissing();
});
