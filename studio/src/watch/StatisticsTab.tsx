import { useEffect, useMemo, useState } from "react";

import { api } from "../api/client";
import type { History } from "../api/types";
import { liveStore, useLive } from "../store/live";
import { boxTexts } from "./figures";
import { ProblemNote } from "./ProblemNote";
import { appended, GAP_S, plannedCharts, seriesLabel, type ChartPlan } from "./series";
import { useAsk } from "./useAsk";
import { Chart } from "./Chart";

const EMPTY: History = { at_s: [], series: {} };

/** Charts of the last fifteen minutes, going on live. */
export function StatisticsTab({ name, kind }: { name: string; kind: string }) {
  return <Statistics key={`${kind}:${name}`} name={name} kind={kind} />;
}

function Statistics({ name, kind }: { name: string; kind: string }) {
  const { history, problem } = useHistory(name, kind);
  const charts = plannedCharts(history.series);
  return (
    <section className="statistics" aria-label={`Statistics of ${name}`}>
      <ProblemNote problem={problem} />
      {kind === "box" && <BoxSummary name={name} />}
      {charts.length === 0 && !problem && <p className="quiet">Nothing has been measured yet.</p>}
      {charts.map((chart) => (
        <PlannedChart key={chart.title} plan={chart} history={history} />
      ))}
    </section>
  );
}

function PlannedChart({ plan, history }: { plan: ChartPlan; history: History }) {
  const keys = plan.keys.join("\n");
  const series = useMemo(
    () => keys.split("\n").map((key) => ({ label: seriesLabel(key), values: history.series[key] ?? [] })),
    [keys, history],
  );
  return <Chart title={plan.title} at={history.at_s} series={series} format={plan.format} range={plan.range} />;
}

/** What a box has done, in words. */
function BoxSummary({ name }: { name: string }) {
  const title = useLive((state) => {
    const box = state.picture?.boxes[name];
    return box ? boxTexts(box).title : "";
  });
  return (
    <ul className="summary">
      {title.split("\n").map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

function useHistory(name: string, kind: string) {
  const [history, setHistory] = useState<History>(EMPTY);
  const { run, problem } = useAsk();
  useEffect(() => {
    let wanted = true;
    const load = () =>
      void run(async () => {
        const found = await api.history(name);
        if (wanted) setHistory(found);
      });
    load();
    const stop = liveStore.subscribe(({ picture }, before) => {
      if (!picture || picture === before.picture) return;
      setHistory((known) => appended(known, picture, kind, name));
      // The server knows what happened while this page was hidden.
      if (before.picture && picture.at_us - before.picture.at_us > GAP_S * 1e6) load();
    });
    return () => {
      wanted = false;
      stop();
    };
  }, [name, kind, run]);
  return { history, problem };
}
