import { RULES, type GraphKind } from "./graph";
import { histogram, type Observed } from "./observed";
import { HEIGHT, screenX, screenY, shownTicks, WIDTH, type Domain } from "./scale";

const BARS = 40;
const LEVELS = [0, 0.5, 1];

/** Axes, and the histogram of what was observed. */
export function GraphBackground({ kind, domain, observed }: { kind: GraphKind; domain: Domain; observed: Observed[GraphKind] }) {
  const { low, high } = domain;
  const bars = histogram(observed, low, high, BARS);
  const width = (screenX(high, domain) - screenX(low, domain)) / BARS;
  return (
    <g aria-hidden="true">
      {LEVELS.map((level) => (
        <g key={level}>
          <line className="qos-grid" x1={screenX(low, domain)} x2={screenX(high, domain)} y1={screenY(level)} y2={screenY(level)} />
          <text className="qos-tick" x={screenX(low, domain) - 9} y={screenY(level) + 3} textAnchor="end">
            {level}
          </text>
        </g>
      ))}
      {observed &&
        bars.map((bar, at) => (
          <rect
            key={at}
            className="qos-bar"
            x={screenX(low, domain) + at * width}
            width={Math.max(width - 1, 0.5)}
            y={screenY(bar * 0.9)}
            height={screenY(0) - screenY(bar * 0.9)}
          />
        ))}
      {shownTicks(domain).map((tick) => (
        <text key={tick} className="qos-tick" x={screenX(tick, domain)} y={HEIGHT - 17} textAnchor="middle">
          {tick}
        </text>
      ))}
      <text className="qos-tick" x={WIDTH - 10} y={HEIGHT - 4} textAnchor="end">
        {RULES[kind].axis}
      </text>
    </g>
  );
}
