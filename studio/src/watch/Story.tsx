import { useState } from "react";

import type { StoryEntry } from "../api/types";
import { useLive } from "../store/live";
import { ago, timeOfDay } from "./format";
import { sentence, storyTone } from "./sentences";

const EVENTS = ["ran", "waited", "moved", "shed", "changed", "failed"];
const SHOWN = 200;

type Props = { entries: StoryEntry[]; about: string | null; empty: string };

/** Decisions in sentences, newest first, with how long ago they were made. */
export function Story({ entries, about, empty }: Props) {
  const [hidden, setHidden] = useState<string[]>([]);
  const now = useLive((state) => Math.floor((state.picture?.at_us ?? 0) / 1e6) * 1e6);
  const shown = entries.filter((entry) => !hidden.includes(entry.event)).slice(-SHOWN).reverse();
  const present = EVENTS.filter((event) => entries.some((entry) => entry.event === event));
  return (
    <div className="story">
      {present.length > 1 && (
        <div className="chips" role="group" aria-label="Kinds of decisions">
          {present.map((event) => (
            <button
              key={event}
              type="button"
              className="chip"
              aria-pressed={!hidden.includes(event)}
              onClick={() =>
                setHidden(hidden.includes(event) ? hidden.filter((one) => one !== event) : [...hidden, event])
              }
            >
              {event}
            </button>
          ))}
        </div>
      )}
      <ol className="story-list">
        {shown.map((entry, at) => (
          <li key={`${entry.at_us}-${at}`} className={`tone-${storyTone(entry.event)}`}>
            <time title={timeOfDay(entry.at_us)}>{ago((now - entry.at_us) / 1e6)}</time>
            <span>{sentence(entry, about)}</span>
          </li>
        ))}
      </ol>
      {shown.length === 0 && <p className="quiet">{empty}</p>}
    </div>
  );
}
