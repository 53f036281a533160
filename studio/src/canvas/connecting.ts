/** The wire that is being drawn, and the inputs that it fits. */

import { create } from "zustand";

import { useDraft } from "../store/draft";
import { fitting } from "./fit";
import { useModel } from "./model";

type Connecting = { arc: string | null; fits: Map<string, Set<string>> };

const NONE: Connecting = { arc: null, fits: new Map() };

export const useConnecting = create<Connecting>()(() => NONE);

export function fitsOf(arc: string): Map<string, Set<string>> {
  const { draft, report } = useDraft.getState();
  return fitting({ document: draft, graph: useModel.getState().graph, arcs: report?.arcs ?? {} }, arc);
}

export function startConnecting(arc: string): void {
  useConnecting.setState({ arc, fits: fitsOf(arc) });
}

export const stopConnecting = (): void => useConnecting.setState(NONE);
