/** Keeping the layout on the server. Only what has changed is sent: two people do not undo each other's moves. */

import { api, ProblemError } from "../api/client";
import type { Layout, LayoutChange } from "../api/types";
import { same } from "../draft/diff";
import { settled, useDraft, type Positions } from "./draft";
import { rememberBookmarks } from "./remembered";
import { mayEdit } from "./session";

/** Entries that are new or other in `now`; null for those that are gone. */
function changed<Value>(before: Record<string, Value>, now: Record<string, Value>): Record<string, Value | null> {
  const found: Record<string, Value | null> = {};
  for (const [key, value] of Object.entries(now)) if (!same(before[key], value)) found[key] = value;
  for (const key of Object.keys(before)) if (!(key in now)) found[key] = null;
  return found;
}

/** What a person has changed; null if nothing. `placed` are positions that nobody chose. */
export function layoutChange(before: Layout, now: Layout, placed: Positions): LayoutChange | null {
  const change: LayoutChange = { positions: {}, placed: {}, open: changed(before.open, now.open), bookmarks: same(before.bookmarks, now.bookmarks) ? null : now.bookmarks };
  for (const [id, at] of Object.entries(changed(before.positions, now.positions)))
    if (at && placed[id] === at) change.placed[id] = at;
    else change.positions[id] = at;
  const chosen = Object.keys(change.positions).length + Object.keys(change.open).length > 0 || change.bookmarks !== null;
  return chosen ? change : null;
}

/** Whether the server has a bookmark; the others of people who may not change the layout stay in their browser. */
export const isShared = (mark: Layout["bookmarks"][number], saved: Layout): boolean => saved.bookmarks.some((each) => same(each, mark));

let saving = false;

async function saveNow(leaving = false): Promise<void> {
  const { layout, savedLayout, placed, loaded, deployed } = useDraft.getState();
  if (loaded && !mayEdit()) rememberBookmarks(deployed.network, layout.bookmarks.filter((mark) => !isShared(mark, savedLayout)));
  const change = loaded && mayEdit() ? layoutChange(savedLayout, layout, placed) : null;
  if (!change) return;
  if (saving && !leaving) return saveLayoutSoon();
  saving = true;
  try {
    await api.changeLayout(change, leaving);
    useDraft.setState({ savedLayout: layout });
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    // It is tried again with the next change, or when the server is there again.
  } finally {
    saving = false;
  }
}

export const saveLayoutSoon = settled(600, () => void saveNow());

useDraft.subscribe((state, before) => {
  if (state.layout !== before.layout) saveLayoutSoon();
});
window.addEventListener("pagehide", () => void saveNow(true));
