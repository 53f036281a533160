import { Button } from "../components/Button";
import { useLive } from "../store/live";
import { useForbidden } from "../store/role";
import { useUi } from "../store/ui";
import { chooseApplication, stepTrain, stepTuple, togglePause, useDebug } from "./actions";
import { isPaused } from "./paused";

const PAUSE_FIRST = "Pause first.";

/** For the top bar: pause or resume all or one application, and step while paused. */
export function DebugControls() {
  const application = useDebug((state) => state.application);
  const busy = useDebug((state) => state.busy);
  const paused = useLive((state) => isPaused(state.picture, application));
  const known = useLive((state) => state.picture !== null);
  const hit = useLive((state) => state.picture?.debug.hit?.arc ?? null);
  const forbidden = useForbidden("operator");
  const openBottom = useUi((state) => state.openBottom);
  const reason = forbidden ?? (known ? null : "The server has not said yet how it is.");
  return (
    <div className="debug-controls" role="group" aria-label="Debugging">
      <Applications />
      <Button
        data-testid="pause"
        icon={paused ? "play" : "pause"}
        aria-label={paused ? "Resume" : "Pause"}
        title={paused ? "Resume (p)" : "Pause (p)"}
        aria-pressed={paused}
        reason={reason}
        disabled={busy}
        onClick={() => void togglePause()}
      />
      <Button
        data-testid="step-train"
        icon="step"
        aria-label="Step a train"
        title="Run the next train (.)"
        reason={reason ?? (paused ? null : PAUSE_FIRST)}
        disabled={busy}
        onClick={() => void stepTrain()}
      />
      <Button
        data-testid="step-tuple"
        icon="step_tuple"
        aria-label="Step one tuple"
        title="Run one tuple through the boxes (,)"
        reason={reason ?? (paused ? null : PAUSE_FIRST)}
        disabled={busy}
        onClick={() => void stepTuple()}
      />
      {hit !== null && (
        <button type="button" className="hit-chip" title={`Stopped at ${hit}`} onClick={() => openBottom("debug")}>
          ● <span className="hit-words">stopped at </span>
          {hit}
        </button>
      )}
    </div>
  );
}

/** What pause, resume and step are about: everything, or one output's application. */
function Applications() {
  const application = useDebug((state) => state.application);
  const outputs = useLive((state) => Object.keys(state.picture?.outputs ?? {}));
  const stopped = useLive((state) => state.picture?.debug.applications ?? []);
  if (outputs.length < 2 && application === null) return null;
  return (
    <select
      className="application"
      aria-label="Application to pause and step"
      value={application ?? ""}
      onChange={(event) => chooseApplication(event.target.value || null)}
    >
      <option value="">all applications</option>
      {outputs.map((name) => (
        <option key={name} value={name}>
          {name}
          {stopped.includes(name) ? " (paused)" : ""}
        </option>
      ))}
    </select>
  );
}
