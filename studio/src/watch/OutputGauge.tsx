import { memo } from "react";

import { GraphSpark } from "../qos/GraphSpark";
import { useLive } from "../store/live";
import { outputTitle, outputTone } from "./figures";
import { count, duration, rate, utility } from "./format";
import { Ring } from "./Ring";
import { Sparkline } from "./Sparkline";

/** An output's utility now, its course, and its QoS graph with the present point. */
export const OutputGauge = memo(function OutputGauge({ name }: { name: string }) {
  const found = useLive((state) => {
    const output = state.picture?.outputs[name];
    if (!output) return null;
    return {
      utility: output.utility === null ? null : Math.floor(output.utility * 100) / 100,
      tone: outputTone(output),
      rate: rate(output.rate),
      latency: output.latency_s === null ? "" : duration(output.latency_s),
      latency_s: output.latency_s === null ? null : Number(output.latency_s.toPrecision(2)),
      recent: output.recent_utility,
      title: outputTitle(name, output),
      failed: output.failed,
      shed: output.shed ? count(output.shed) : "",
    };
  });
  if (!found) return null;
  return (
    <div className="gauge" title={found.title}>
      <div className="gauge-row">
        <Ring value={found.utility} tone={found.tone} />
        <span className={`gauge-number tone-${found.tone}`}>{utility(found.utility)}</span>
        <GraphSpark output={name} x={found.latency_s} />
        <Sparkline values={found.recent} label={`utility of ${name} in the last minutes`} width={40} />
      </div>
      <div className="gauge-row">
        <span className="figure flow">{found.rate}</span>
        {found.latency && <span className="figure">{found.latency}</span>}
        {found.shed && <span className="figure tone-shed">{found.shed} shed</span>}
        {found.failed && <span className="figure tone-red">■ failed</span>}
      </div>
    </div>
  );
});
