import type { Tone } from "./figures";

const RADIUS = 7;
const ROUND = 2 * Math.PI * RADIUS;

/** A ring that is as full as the utility is high. */
export function Ring({ value, tone }: { value: number | null; tone: Tone }) {
  const full = Math.min(Math.max(value ?? 0, 0), 1);
  return (
    <svg className={`ring tone-${tone}`} width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
      <circle className="ring-track" cx="10" cy="10" r={RADIUS} />
      <circle
        className="ring-value"
        cx="10"
        cy="10"
        r={RADIUS}
        strokeDasharray={`${full * ROUND} ${ROUND}`}
        transform="rotate(-90 10 10)"
      />
    </svg>
  );
}
