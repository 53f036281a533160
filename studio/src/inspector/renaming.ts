import { nodeId } from "../canvas/graph";
import { kindOf, type Ref } from "../draft/document";
import { rename } from "../draft/edits";
import { useDraft } from "../store/draft";
import { useUi } from "../store/ui";

/** Rename an entity; it stays where it is and stays selected. */
export function renameEntity(ref: Ref, to: string): void {
  if (ref.name === to) return;
  const { layout, edit, setLayout } = useDraft.getState();
  const [before, after] = [nodeId(ref.section, ref.name), nodeId(ref.section, to)];
  const at = layout.positions[before];
  if (ref.section === "groups" && layout.open[before] !== undefined) setLayout({ open: { ...layout.open, [after]: layout.open[before] } });
  edit((document) => rename(document, ref, to), at ? { place: { [after]: at } } : {});
  const kind = kindOf(ref.section);
  if (kind) useUi.getState().select({ kind, name: to });
}
