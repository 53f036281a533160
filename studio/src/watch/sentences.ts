/** Stories in sentences (pure). */

import type { StoryEntry } from "../api/types";

const VERBS: Record<string, string> = {
  ran: "ran",
  waited: "waited",
  moved: "was moved",
  shed: "was shed",
  changed: "changed",
  failed: "failed",
};

/** "ran 12 times: alerts had the steeper graph", "waited 1.2 s: alerts was due sooner (3 times)". */
export function sentence(entry: StoryEntry, about: string | null): string {
  const subject = about === null ? `${listed(entry.about)} ` : "";
  const why = entry.why.replace(/\(?eddy@(\w+)\)?/g, "queries over $1");
  const times = `${entry.count} times`;
  if (why.startsWith(`${entry.event} `)) return `${subject}${why}${entry.count > 1 ? ` (${times})` : ""}`;
  const verb = VERBS[entry.event] ?? entry.event;
  return `${subject}${verb}${entry.count > 1 ? ` ${times}` : ""}${why ? `: ${why}` : ""}`;
}

function listed(names: string[]): string {
  if (names.length < 2) return names[0] ?? "the engine";
  return `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}

export const storyTone = (event: string): string =>
  event === "failed" ? "red" : event === "shed" ? "shed" : event === "waited" ? "amber" : "idle";
