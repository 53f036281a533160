import { Suspense, useState, type ComponentType, type CSSProperties } from "react";

import { Boundary } from "../components/Boundary";
import { Button } from "../components/Button";
import { onDemand } from "../components/onDemand";
import { Tabs } from "../components/Tabs";
import { problemsOf } from "../draft/saying";
import { useDraft } from "../store/draft";
import { useUi, type BottomTab } from "../store/ui";
import { Grip } from "./Grip";
import { ProblemsPanel } from "./ProblemsPanel";

function ProblemsLabel() {
  const problems = useDraft((state) => problemsOf(state.report, state.refusal).length);
  const cautions = useDraft((state) => state.report?.cautions.length ?? 0);
  return (
    <>
      Problems
      {problems + cautions > 0 && <span className={`count ${problems ? "bad" : ""}`}>{problems + cautions}</span>}
    </>
  );
}

// Panels with charts and editors are loaded when they are first opened.
const PANELS: Record<BottomTab, ComponentType> = {
  tuples: onDemand(() => import("../watch/TuplesPanel").then((module) => module.TuplesPanel)),
  results: onDemand(() => import("../ask/ResultsPanel").then((module) => module.ResultsPanel)),
  sql: onDemand(() => import("../ask/SqlPanel").then((module) => module.SqlPanel)),
  problems: ProblemsPanel,
  story: onDemand(() => import("../watch/StoryPanel").then((module) => module.StoryPanel)),
  log: onDemand(() => import("../watch/LogPanel").then((module) => module.LogPanel)),
  debug: onDemand(() => import("../debug/DebugPanel").then((module) => module.DebugPanel)),
};

/** Below the canvas: tuples, answers, problems, what happened. */
export function BottomPanel() {
  const { bottomOpen, bottomTab, openBottom, toggle } = useUi();
  const Panel = PANELS[bottomTab];
  const [height, setHeight] = useState<number | null>(null);
  const style = height === null ? undefined : ({ "--bottom-height": `${height}px` } as CSSProperties);
  return (
    <section className="bottom-panel" aria-label="Bottom panel" style={style}>
      {bottomOpen && <Grip height={height} onChange={setHeight} />}
      <div className="panel-head">
        <Tabs
          label="Bottom panel"
          tabs={[
            { name: "tuples", label: "Tuples" },
            { name: "results", label: "Results" },
            { name: "sql", label: "SQL" },
            { name: "problems", label: <ProblemsLabel /> },
            { name: "story", label: "Story" },
            { name: "log", label: "Log" },
            { name: "debug", label: "Debug" },
          ]}
          current={bottomTab}
          onChange={openBottom}
        />
        <Button look="quiet" icon={bottomOpen ? "down" : "chevron"} aria-label={bottomOpen ? "Hide the bottom panel" : "Show the bottom panel"} title={bottomOpen ? "Hide" : "Show"} onClick={() => toggle("bottomOpen")} />
      </div>
      {bottomOpen && (
        <div className={`panel-body bottom-body ${bottomTab === "debug" ? "debug" : ""}`}>
          <Boundary key={bottomTab} label="panel">
            <Suspense fallback={null}>
              <Panel />
            </Suspense>
          </Boundary>
        </div>
      )}
    </section>
  );
}
