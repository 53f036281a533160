import type { Picture } from "../api/types";
import { isAllPaused } from "../debug/paused";
import { useUi } from "../store/ui";
import { useLive, useLiveConnection } from "../store/live";
import { meanCourse } from "./courses";
import { bytes, count, rate, utility } from "./format";
import { Sparkline } from "./Sparkline";

const NOBODY: string[] = [];
const WORDS = { idle: "offline", connecting: "connecting", reconnecting: "reconnecting" } as const;

/** For the top bar: state, what is wrong, rate, utility with its course. */
export function StatusBar() {
  useLiveConnection();
  const found = useLive((state) => {
    const picture = state.picture;
    const status = state.status;
    const some = picture !== null && picture.debug.paused && !isAllPaused(picture);
    return {
      word: status === "live" ? wordOf(picture, some) : WORDS[status],
      stale: status !== "live",
      attempt: state.attempt,
      failure: picture?.failure ?? null,
      stopped: some ? picture.debug.applications : NOBODY,
      rate: picture ? rate(picture.rate) : "",
      utility: picture ? utility(picture.utility) : "",
      late: picture?.late ? count(picture.late) : "",
      dead: picture?.dead ? count(picture.dead) : "",
      shed: picture?.shed ? count(picture.shed) : "",
      memory: picture?.memory_bytes ? bytes(picture.memory_bytes) : "",
    };
  });
  const tone = found.stale ? "amber" : found.word === "running" ? "calm" : found.word === "failed" ? "red" : "amber";
  return (
    <div className={`status ${found.stale ? "stale" : ""}`} data-testid="status">
      <span className={`status-state tone-${tone}`} role="status" title={stateTitle(found)}>
        <span className={`status-dot dot-${found.stale ? "ring" : found.word}`} aria-hidden="true" />
        {found.word}
        {found.stale && found.attempt > 1 ? ` (${found.attempt})` : ""}
      </span>
      {found.stopped.length > 0 && (
        <span className="status-figure status-stopped tone-amber" title={`Paused: ${found.stopped.join(", ")}. Everything else runs.`}>
          {found.stopped.length === 1 ? `${found.stopped[0]} paused` : `${found.stopped.length} applications paused`}
        </span>
      )}
      <Counted text={found.late} word="late" tone="amber" />
      <Counted text={found.dead} word="dead" tone="red" />
      <Counted text={found.shed} word="shed" tone="shed" />
      {found.rate && (
        <span className="status-figure status-rate" title="tuples that arrive per second">
          {found.rate}
        </span>
      )}
      {found.utility && (
        <span className="status-figure" title="utility of all outputs">
          utility {found.utility}
          <UtilityCourse />
        </span>
      )}
      {found.memory && (
        <span className="status-figure status-memory" title="memory that queues use">
          {found.memory}
        </span>
      )}
    </div>
  );
}

function wordOf(picture: Picture | null, some: boolean): string {
  return picture?.state === "paused" && some ? "running" : (picture?.state ?? "waiting");
}

function stateTitle(found: { stale: boolean; failure: string | null; word: string }): string {
  if (found.failure) return found.failure;
  if (found.stale) return "Figures are those of the last contact with the server.";
  return `The engine is ${found.word}.`;
}

function Counted({ text, word, tone }: { text: string; word: string; tone: string }) {
  const openBottom = useUi((state) => state.openBottom);
  if (!text) return null;
  return (
    <button type="button" className={`status-count tone-${tone}`} onClick={() => openBottom("story")}>
      {text} {word}
    </button>
  );
}

/** The mean utility of the outputs over the last minutes. */
function UtilityCourse() {
  const outputs = useLive((state) => Object.values(state.picture?.outputs ?? {}).map((one) => one.recent_utility));
  const values = meanCourse(outputs);
  return <Sparkline values={values} label="utility of all outputs in the last minutes" />;
}
