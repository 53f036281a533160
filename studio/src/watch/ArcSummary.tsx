import { useLive } from "../store/live";
import { arcFacts, arcTone } from "./figures";

/** What an arc carries and how long it waits: what its colour and its tooltip tell, as text. */
export function ArcSummary({ arc }: { arc: string }) {
  const facts = useLive((state) => {
    const found = state.picture?.arcs[arc];
    return found ? { tone: arcTone(found), ...arcFacts(found) } : null;
  });
  if (!facts) return null;
  return (
    <dl className="arc-summary" data-testid="arc-summary">
      <Fact name="rate" text={facts.rate} />
      <Fact name="queue" text={facts.queue} />
      <Fact name="oldest" text={facts.age} tone={facts.tone} />
      <Fact name="mark" text={facts.mark} />
    </dl>
  );
}

function Fact({ name, text, tone }: { name: string; text: string; tone?: string }) {
  if (!text) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd className={`mono ${tone === "amber" || tone === "red" ? `figure tone-${tone}` : ""}`} title={text}>
        {text}
      </dd>
    </div>
  );
}
