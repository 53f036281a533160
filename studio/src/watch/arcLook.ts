import { useLive } from "../store/live";
import { arcLabel, arcTitle, arcTone, arcWidth, type Tone } from "./figures";

/** The line tells how pressing it is for what the edge leads to, the mark for all that read the arc. */
export type ArcLook = { width: number; line: Tone; tone: Tone; queue: string; age: string; title: string };

const UNKNOWN: ArcLook = { width: 1.5, line: "idle", tone: "idle", queue: "", age: "", title: "" };

/** How an arc is drawn: thick by rate, coloured by pressure, with its queue, and the age of its oldest tuple if that presses. */
export function useArcLook(arc: string, readers?: readonly string[]): ArcLook {
  return useLive((state) => {
    const found = state.picture?.arcs[arc];
    if (!found) return UNKNOWN;
    return {
      width: arcWidth(found.rate),
      line: arcTone(found, readers),
      tone: arcTone(found),
      ...arcLabel(found),
      title: arcTitle(arc, found),
    };
  });
}
