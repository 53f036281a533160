/** Opening and closing groups, and going into them. */

import { useDraft } from "../store/draft";
import { useUi } from "../store/ui";
import { focus, useFocus } from "./focus";
import { around } from "./grouping";
import { useModel } from "./model";

const isOpen = (id: string): boolean => useModel.getState().scene.open.has(id);

export function setGroupOpen(ids: string[], open: boolean): void {
  const { layout, setLayout } = useDraft.getState();
  const changed = ids.filter((id) => isOpen(id) !== open);
  if (changed.length) setLayout({ open: { ...layout.open, ...Object.fromEntries(changed.map((id) => [id, open])) } });
}

export const toggleGroup = (id: string): void => setGroupOpen([id], !isOpen(id));

/** Open the groups around a node so that it is shown; leave the group that is shown alone if it is elsewhere. */
export function reveal(id: string): void {
  const { grouping, scene } = useModel.getState();
  if (scene.nodes.some((node) => node.id === id)) return;
  const path = around(grouping, id);
  const root = focus();
  if (root !== null && !path.includes(root)) useFocus.setState({ path: [] });
  setGroupOpen(path.slice(path.indexOf(focus() ?? "") + 1), true);
}

/** Show the content of a group alone without moving the view; null, or a group that is no more: everything. */
export function showAlone(id: string | null): void {
  const { grouping } = useModel.getState();
  const path = id !== null && grouping.groups.has(id) ? [...around(grouping, id), id] : [];
  if (focus() !== (path.at(-1) ?? null)) useFocus.setState({ path });
}

/** Show the content of a group alone; "" shows everything again. */
export function zoomInto(id: string): void {
  useFocus.setState({ path: id ? [...around(useModel.getState().grouping, id), id] : [] });
  useUi.getState().select(null);
  useUi.getState().ask({ kind: "fit" });
}

/** Show the group around the one that is shown alone; tells whether there was one. */
export function zoomOut(): boolean {
  const { path } = useFocus.getState();
  if (path.length) zoomInto(path.at(-2) ?? "");
  return path.length > 0;
}
