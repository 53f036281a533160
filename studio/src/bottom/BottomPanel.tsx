import { lazy, Suspense, type ComponentType } from "react";

import { Boundary } from "../components/Boundary";
import { Button } from "../components/Button";
import { Tabs } from "../components/Tabs";
import { useDraft } from "../store/draft";
import { useUi, type BottomTab } from "../store/ui";
import { ProblemsPanel } from "./ProblemsPanel";

function ProblemsLabel() {
  const problems = useDraft((state) => state.report?.problems.length ?? 0);
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
  tuples: lazy(() => import("../watch/TuplesPanel").then((module) => ({ default: module.TuplesPanel }))),
  results: lazy(() => import("../ask/ResultsPanel").then((module) => ({ default: module.ResultsPanel }))),
  sql: lazy(() => import("../ask/SqlPanel").then((module) => ({ default: module.SqlPanel }))),
  problems: ProblemsPanel,
  story: lazy(() => import("../watch/StoryPanel").then((module) => ({ default: module.StoryPanel }))),
  log: lazy(() => import("../watch/LogPanel").then((module) => ({ default: module.LogPanel }))),
  debug: lazy(() => import("../debug/DebugPanel").then((module) => ({ default: module.DebugPanel }))),
};

/** Below the canvas: tuples, answers, problems, what happened. */
export function BottomPanel() {
  const { bottomOpen, bottomTab, openBottom, toggle } = useUi();
  const Panel = PANELS[bottomTab];
  return (
    <section className="bottom-panel" aria-label="Bottom panel">
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
        <div className="panel-body bottom-body">
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
