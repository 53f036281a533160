import { useLive } from "../store/live";
import { useUi } from "../store/ui";
import { timeOfDay } from "../watch/format";
import { resume } from "./actions";
import { Button } from "../components/Button";
import { Breakpoints } from "./Breakpoints";
import { TraceView } from "./TraceView";

/** Why the engine stands still, what the latest step did at each box, and the breakpoints. */
export function DebugPanel() {
  return (
    <section className="panel debug-panel" aria-label="Debug">
      <div className="debug-main">
        <Hit />
        <TraceView />
      </div>
      <Breakpoints />
    </section>
  );
}

/** Where a breakpoint stopped the engine, and the tuple that did. */
function Hit() {
  const hit = useLive((state) => state.picture?.debug.hit ?? null);
  const select = useUi((state) => state.select);
  if (!hit) return null;
  return (
    <div className="hit" role="alert" data-testid="hit">
      <p>
        <span aria-hidden="true">●</span> Stopped before a tuple at{" "}
        <button type="button" className="link mono" onClick={() => select({ kind: "arc", name: hit.arc })}>
          {hit.arc}
        </button>
      </p>
      <span className="hit-when quiet">
        moment {hit.moment}, {timeOfDay(hit.at_us)}
      </span>
      <pre className="mono" title={JSON.stringify(hit.tuple, null, 1)}>
        {JSON.stringify(hit.tuple)}
      </pre>
      <Button icon="play" title="Let it pass (p); a step lets it pass, too" onClick={() => void resume()}>
        Resume
      </Button>
    </div>
  );
}
