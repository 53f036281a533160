import { useLive } from "../store/live";
import { arcTitle, arcTone, arcWidth, type Tone } from "./figures";
import { count } from "./format";

export type ArcLook = { width: number; tone: Tone; label: string; title: string };

const UNKNOWN: ArcLook = { width: 1.5, tone: "idle", label: "", title: "" };

/** How an arc is drawn: thick by rate, coloured by pressure, its queue as label if not empty. */
export function useArcLook(arc: string): ArcLook {
  return useLive((state) => {
    const found = state.picture?.arcs[arc];
    if (!found) return UNKNOWN;
    return {
      width: arcWidth(found.rate),
      tone: arcTone(found),
      label: found.queued ? count(found.queued) : "",
      title: arcTitle(arc, found),
    };
  });
}
