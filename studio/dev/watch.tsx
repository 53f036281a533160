import { useState } from "react";
import { createRoot } from "react-dom/client";

import type { Declaration } from "../src/api/types";
import { ResultsPanel } from "../src/ask/ResultsPanel";
import { SqlPanel } from "../src/ask/SqlPanel";
import { DebugControls } from "../src/debug/DebugControls";
import { DebugPanel } from "../src/debug/DebugPanel";
import { QosTab } from "../src/qos/QosTab";
import { useSession } from "../src/store/session";
import { useUi, type BottomTab } from "../src/store/ui";
import "../src/styles/base.css";
import { BoxFiguresRow } from "../src/watch/BoxFiguresRow";
import { LogPanel } from "../src/watch/LogPanel";
import { OutputGauge } from "../src/watch/OutputGauge";
import { PointFigures } from "../src/watch/PointFigures";
import { StatisticsTab } from "../src/watch/StatisticsTab";
import { StatusBar } from "../src/watch/StatusBar";
import { StoryPanel } from "../src/watch/StoryPanel";
import { StoryTab } from "../src/watch/StoryTab";
import { TuplesPanel } from "../src/watch/TuplesPanel";
import { pretend } from "./fakeServer";

pretend();
const asked = new URLSearchParams(location.search);
document.documentElement.dataset.theme = asked.get("theme") ?? "light";
useSession.setState({ server: { version: "", network: "plant", role: "editor", started_at: "", master: "", durable: true, limits: { body_bytes: 1, rows: 1 } } });
useUi.getState().select({ kind: (asked.get("kind") ?? "stream") as "stream", name: asked.get("name") ?? "readings" });
useUi.getState().openBottom((asked.get("tab") ?? "tuples") as BottomTab);

const PANELS = { tuples: TuplesPanel, results: ResultsPanel, sql: SqlPanel, story: StoryPanel, log: LogPanel, debug: DebugPanel, problems: LogPanel };

function Page() {
  const tab = useUi((state) => state.bottomTab);
  const [qos, setQos] = useState<Declaration | null>({ latency: [[0, 1], [2, 1], [10, 0]], loss: [[1, 1], [0.5, 0.8], [0, 0]], value: { on: "celsius", graph: [[60, 0.2], [100, 1]] } });
  const Panel = PANELS[tab];
  const side = { overflow: "auto", padding: 12, background: "var(--surface)", borderLeft: "1px solid var(--line)" } as const;
  return (
    <div style={{ display: "grid", gridTemplateRows: "48px 1fr 280px", height: "100%" }}>
      <header style={{ display: "flex", gap: 16, alignItems: "center", padding: "0 12px", background: "var(--surface)", borderBottom: "1px solid var(--line)" }}>
        <strong>plant</strong>
        <StatusBar />
        <DebugControls />
      </header>
      <div style={{ display: "grid", gridTemplateColumns: "1fr 340px 340px", minHeight: 0 }}>
        <div style={{ padding: 24, display: "flex", flexDirection: "column", gap: 12, alignItems: "start" }}>
          {["watch", "tens"].map((name) => (
            <div key={name} style={{ background: "var(--surface)", border: "1px solid var(--line)", borderRadius: 6, padding: 8, width: 260 }}>
              <strong>{name}</strong>
              <BoxFiguresRow name={name} />
            </div>
          ))}
          {["alerts", "means"].map((name) => (
            <div key={name} style={{ background: "var(--surface)", border: "1px solid var(--line)", borderRadius: 6, padding: 8, width: 260 }}>
              <strong>{name}</strong>
              <OutputGauge name={name} />
            </div>
          ))}
          <PointFigures name="recent" />
        </div>
        <div style={side}>
          {asked.get("side") === "story" ? <StoryTab name="watch" /> : <StatisticsTab name="alerts" kind="output" />}
        </div>
        <div style={side}>
          <QosTab output="alerts" value={qos} onChange={setQos} />
        </div>
      </div>
      <div style={{ background: "var(--surface)", borderTop: "1px solid var(--line)", minHeight: 0 }}>
        <Panel />
      </div>
    </div>
  );
}

const root = document.getElementById("root");
if (root) createRoot(root).render(<Page />);
