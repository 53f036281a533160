/** Opening and closing groups, and going into them. */

import { create } from "zustand";

import { useDraft } from "../store/draft";
import { useUi } from "../store/ui";
import { useModel } from "./model";
import { around, isOpen } from "./scene";

/** The groups that the person has gone into, outermost first. */
export const useFocus = create<{ path: string[] }>()(() => ({ path: [] }));

const groupOpen = (id: string): boolean =>
  isOpen(useDraft.getState().layout, id, useModel.getState().graph.nodes.size);

export function setGroupOpen(ids: string[], open: boolean): void {
  const { layout, setLayout } = useDraft.getState();
  const changed = ids.filter((id) => groupOpen(id) !== open);
  if (changed.length) setLayout({ open: { ...layout.open, ...Object.fromEntries(changed.map((id) => [id, open])) } });
}

export const toggleGroup = (id: string): void => setGroupOpen([id], !groupOpen(id));

/** Open the groups around a node so that it is shown. */
export function reveal(id: string): void {
  setGroupOpen(around(useModel.getState().grouping, id), true);
}

/** Open a group and show it alone; "" shows everything again. */
export function zoomInto(id: string): void {
  if (!id) {
    useFocus.setState({ path: [] });
    useUi.getState().ask({ kind: "fit" });
    return;
  }
  const path = [...around(useModel.getState().grouping, id), id];
  setGroupOpen(path, true);
  useFocus.setState({ path });
  useUi.getState().ask({ kind: "center", node: id });
}

/** The nodes inside a group, through all levels. */
export function inside(id: string): string[] {
  const { grouping, graph } = useModel.getState();
  return [...graph.nodes.keys()].filter((node) => around(grouping, node).includes(id));
}
