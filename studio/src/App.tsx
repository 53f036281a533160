import "@xyflow/react/dist/base.css";

import "./styles/base.css";
import "./styles/shell.css";
import "./styles/canvas.css";
import "./styles/forms.css";
import "./styles/watch.css";

import { useEffect } from "react";

import { BottomPanel } from "./bottom/BottomPanel";
import { Canvas } from "./canvas/Canvas";
import { warmUp } from "./canvas/place";
import { DeployDialog } from "./deploy/DeployDialog";
import { emptyNetwork, isEmpty } from "./draft/document";
import { Inspector } from "./inspector/Inspector";
import { SidePanel } from "./palette/SidePanel";
import { SearchDialog } from "./search/SearchDialog";
import { CsvDialog } from "./shell/CsvDialog";
import { FileDrop } from "./shell/FileDrop";
import { Notices } from "./shell/Notices";
import { useShortcuts } from "./shell/shortcuts";
import { TokenForm } from "./shell/TokenForm";
import { TopBar } from "./shell/TopBar";
import { Welcome } from "./shell/Welcome";
import { askNetwork, checkAgain, followDeployed, loadDraft, useDraft } from "./store/draft";
import { liveStore } from "./store/live";
import { saveLayoutSoon } from "./store/savedLayout";
import { startSession, useSession } from "./store/session";
import { useUi } from "./store/ui";

/** Start once: who we are, then the network; afterwards follow what others deploy. */
export async function start(): Promise<void> {
  // A draft stays what it is while the person gives another token.
  const asked = useDraft.getState().loaded ? null : askNetwork();
  if ((await startSession()) && asked) await loadDraft({ asked });
}

function useFollowing(): void {
  useEffect(
    () =>
      liveStore.subscribe((state, before) => {
        if (state.status === "live" && before.status !== "live") {
          checkAgain();
          saveLayoutSoon();
        }
        const version = state.picture?.network;
        if (version !== undefined && version !== before.picture?.network) void followDeployed(version);
      }),
    [],
  );
}

function Studio() {
  useShortcuts();
  useFollowing();
  const empty = useDraft((state) => state.loaded && isEmpty(state.draft ?? emptyNetwork()));
  const { sideOpen, inspectorOpen, bottomOpen, searchOpen, deployOpen, csv } = useUi();
  const inspecting = inspectorOpen && !empty;
  return (
    <div className={`studio ${sideOpen ? "" : "no-side"} ${inspecting ? "" : "no-inspector"} ${empty ? "empty" : ""} ${bottomOpen ? "" : "no-bottom"}`}>
      <TopBar />
      <SidePanel />
      <main className="stage">
        <Notices />
        <Canvas />
        {empty && <Welcome />}
      </main>
      {!empty && <Inspector />}
      <BottomPanel />
      {searchOpen && <SearchDialog />}
      {deployOpen && <DeployDialog />}
      {csv && <CsvDialog csv={csv} />}
      <FileDrop />
    </div>
  );
}

/** The studio: top bar, palette, canvas, inspector, bottom panels. */
export function App() {
  const phase = useSession((state) => state.phase);
  useEffect(() => {
    warmUp();
    void start();
  }, []);
  if (phase === "token" || phase === "failed") return <TokenForm onReady={() => void start()} />;
  if (phase === "starting") return <div className="starting" aria-busy="true" />;
  return <Studio />;
}
