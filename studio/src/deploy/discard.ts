import { loadDraft, useDraft } from "../store/draft";
import { useUi } from "../store/ui";

/** Take what runs in the place of the draft, and say how to get the draft back. */
export async function discardDraft(): Promise<void> {
  await loadDraft({ discard: true });
  const { problem, past } = useDraft.getState();
  if (!problem && past.length) useUi.getState().tell("Your draft was replaced by what runs. Undo brings it back.", "ok");
}
