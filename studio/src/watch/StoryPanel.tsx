import type { StoryEntry } from "../api/types";
import { useLive, useStory } from "../store/live";
import { useUi } from "../store/ui";
import { count, share } from "./format";
import { Story } from "./Story";

/** What the scheduler, the optimiser and the load shedder do, and why. */
export function StoryPanel() {
  const selected = useUi((state) => state.selected);
  const name = selected && selected.kind !== "group" && selected.kind !== "table" ? selected.name : null;
  return (
    <section className="panel scroll" aria-label="Story">
      <Decisions />
      {name ? <Selected name={name} /> : <p className="quiet pad">Select a box, an arc or an output for its story.</p>}
    </section>
  );
}

function Selected({ name }: { name: string }) {
  const entries: StoryEntry[] = useStory(name);
  return (
    <>
      <h3 className="mono">{name}</h3>
      <Story entries={entries} about={name} empty="No decision about it has been recorded yet." />
    </>
  );
}

/** The scheduler in use, what the optimiser moved, where tuples are dropped. */
function Decisions() {
  const scheduler = useLive((state) => state.picture?.scheduler ?? null);
  const moves = useLive((state) => state.picture?.moves ?? null);
  const drops = useLive((state) => state.picture?.drops ?? null);
  if (!scheduler) return null;
  return (
    <ul className="summary">
      <li>
        Scheduler <strong>{scheduler.scheduler}</strong>
        {scheduler.reasons.length ? `: ${scheduler.reasons.join("; ")}` : ""}
      </li>
      {(moves ?? []).map((move, at) => (
        <li key={`${move.box}-${at}`}>
          <strong className="mono">{move.box}</strong> {move.text}
        </li>
      ))}
      {(drops ?? []).map((drop) => (
        <li key={`${drop.arc}-${drop.superbox}`} className="tone-shed">
          ✂ <strong className="mono">{drop.arc}</strong> drops {share(drop.rate)}
          {drop.interval ? ` (${drop.interval})` : ""} for {drop.outputs.join(", ")}: {count(drop.dropped)} so far
        </li>
      ))}
    </ul>
  );
}
