import { useState } from "react";

import { api } from "../api/client";
import { Button } from "../components/Button";
import { useDeployed } from "../store/deployed";
import { useLive } from "../store/live";
import { useForbidden } from "../store/role";
import { useUi } from "../store/ui";
import { ConditionEditor } from "../watch/ConditionEditor";
import { plural } from "../watch/format";
import { ProblemNote } from "../watch/ProblemNote";
import { useAsk } from "../watch/useAsk";
import { SendTuple } from "./SendTuple";
import { latestTuple } from "./starterTuple";

/** The breakpoints with their conditions, a form for another one, and hand-made tuples. */
export function Breakpoints() {
  const breakpoints = useLive((state) => state.picture?.debug.breakpoints ?? null);
  const select = useUi((state) => state.select);
  const forbidden = useForbidden("operator");
  const { run, problem } = useAsk();
  return (
    <aside className="breakpoints" aria-label="Breakpoints">
      <h3>Breakpoints</h3>
      {(breakpoints ?? []).length === 0 && <p className="quiet">None. A breakpoint pauses the engine before a tuple passes an arc.</p>}
      <ul>
        {(breakpoints ?? []).map((one) => (
          <li key={one.id}>
            <input
              type="checkbox"
              checked={one.enabled}
              aria-label={`Breakpoint on ${one.arc} is on`}
              disabled={forbidden !== null}
              onChange={(event) => void run(async () => void (await api.enableBreakpoint(one.id, event.target.checked)))}
            />
            <button type="button" className="link mono" onClick={() => select({ kind: "arc", name: one.arc })}>
              {one.arc}
            </button>
            <span className="mono condition">{one.condition ?? ""}</span>
            <span className="quiet">{plural(one.hits, "hit")}</span>
            <Button
              look="quiet"
              icon="trash"
              aria-label={`Remove the breakpoint on ${one.arc}`}
              reason={forbidden}
              onClick={() => void run(async () => void (await api.removeBreakpoint(one.id)))}
            />
          </li>
        ))}
      </ul>
      <ProblemNote problem={problem} />
      <NewBreakpoint />
      <HandMade />
    </aside>
  );
}

function NewBreakpoint() {
  const selected = useUi((state) => state.selected);
  const arcs = useLive((state) => Object.keys(state.picture?.arcs ?? {}));
  const pointed = selected && arcs.includes(selected.name) ? selected.name : null;
  const [chosen, setChosen] = useState<string | null>(null);
  const [condition, setCondition] = useState("");
  const forbidden = useForbidden("operator");
  const { run, problem, busy } = useAsk();
  const arc = chosen ?? pointed ?? arcs[0] ?? "";
  const set = () =>
    run(async () => {
      await api.setBreakpoint(arc, condition.trim() || null);
      setCondition("");
    });
  return (
    <form
      className="breakpoint-form"
      onSubmit={(event) => {
        event.preventDefault();
        void set();
      }}
    >
      <select aria-label="Arc of the breakpoint" value={arc} onChange={(event) => setChosen(event.target.value)}>
        {arcs.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <ConditionEditor
        arc={arc}
        label="Condition, SQL over the fields of the arc"
        placeholder="any tuple"
        value={condition}
        onChange={setCondition}
        onEnter={() => void set()}
        testId="breakpoint-condition"
      />
      <Button type="submit" icon="breakpoint" reason={forbidden ?? (arc ? null : "There is no arc yet.")} disabled={busy}>
        Break
      </Button>
      <ProblemNote problem={problem} />
    </form>
  );
}

/** Send a hand-made tuple to a stream. */
function HandMade() {
  const network = useDeployed((state) => state.network);
  const [made, setMade] = useState<{ stream: string; start: string } | null>(null);
  const streams = Object.keys(network?.streams ?? {});
  if (streams.length === 0) return null;
  return (
    <>
      <h3>Hand-made tuple</h3>
      <div className="chips">
        {streams.map((name) => (
          <Button key={name} icon="stream" onClick={() => void latestTuple(network, name).then((start) => setMade({ stream: name, start }))}>
            Send to {name} …
          </Button>
        ))}
      </div>
      {made !== null && <SendTuple stream={made.stream} start={made.start} onClose={() => setMade(null)} />}
    </>
  );
}
