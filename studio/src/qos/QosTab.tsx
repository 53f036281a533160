import { useState } from "react";

import { api } from "../api/client";
import type { Declaration } from "../api/types";
import { Button } from "../components/Button";
import { same } from "../draft/diff";
import { useLive } from "../store/live";
import { useForbidden } from "../store/role";
import { utility } from "../watch/format";
import { ProblemNote } from "../watch/ProblemNote";
import { useAsk } from "../watch/useAsk";
import { useQos } from "./declared";
import { DEFAULT_LATENCY, graphOf, KINDS, RULES, valueField, withGraph, type Graph, type GraphKind } from "./graph";
import { KindEditor } from "./KindEditor";
import { predicted } from "./observed";
import { useNumericFields } from "./useNumericFields";
import { useObserved } from "./useObserved";

type Props = {
  output: string;
  /** The QoS document of the draft. */
  value: Declaration | null;
  /** Changes in a row with the same `merge` count as one for undo. */
  onChange: (value: Declaration | null, merge?: string) => void;
};

/** What delay, loss, values and throughput are worth to an output: graphs whose points are dragged. */
export function QosTab({ output, value, onChange }: Props) {
  const [dragged, setDragged] = useState<{ kind: GraphKind; graph: Graph } | null>(null);
  const observed = useObserved(output, valueField(value));
  const numbers = useNumericFields(output);
  const shown = dragged ? withGraph(value, dragged.kind, dragged.graph) : value;
  const present = KINDS.filter((kind) => graphOf(value, kind));
  const change = (kind: GraphKind, graph: Graph | null, options: { on?: string; merge?: string } = {}) =>
    onChange(withGraph(value, kind, graph, options.on), options.merge && `${kind} ${options.merge}`);
  return (
    <section className="qos" aria-label={`Quality of service of ${output}`}>
      <Worth output={output} would={predicted(shown ?? { latency: DEFAULT_LATENCY }, observed)} changed={dragged !== null} />
      {present.length === 0 && (
        <p className="quiet">No graph of its own. By default a delay of a second is fine, and a minute is worth nothing.</p>
      )}
      {present.map((kind) => (
        <KindEditor
          key={kind}
          kind={kind}
          output={output}
          qos={value ?? {}}
          observed={observed[kind]}
          onDrag={(graph) => setDragged(graph && { kind, graph })}
          onChange={(graph, options) => change(kind, graph, options)}
          onAllow={() => onChange({ ...value, convex: false })}
        />
      ))}
      <div className="chips">
        {KINDS.filter((kind) => !present.includes(kind)).map((kind) => (
          <Button key={kind} look="quiet" icon="add" onClick={() => change(kind, RULES[kind].starter, { on: numbers[0] ?? "" })}>
            {RULES[kind].title} graph
          </Button>
        ))}
      </div>
      <ApplyNow output={output} value={value} />
    </section>
  );
}

/** The utility now, and what would follow from the graphs that are edited. */
function Worth({ output, would, changed }: { output: string; would: number | null; changed: boolean }) {
  const now = useLive((state) => state.picture?.outputs[output]?.utility ?? null);
  return (
    <p className="qos-worth">
      <span>
        now <strong>{utility(now)}</strong>
      </span>
      <span className={changed ? "changed" : ""} aria-live="polite">
        with these graphs {would === null ? "nothing observed yet" : <strong>{utility(would)}</strong>}
      </span>
    </p>
  );
}

/** Let the graphs hold at once, without deploying the rest of the draft. */
function ApplyNow({ output, value }: { output: string; value: Declaration | null }) {
  const { run, problem, busy } = useAsk();
  const forbidden = useForbidden("operator");
  const running = useLive((state) => Boolean(state.picture?.outputs[output]));
  const holds = useQos(output);
  const isSame = same(holds, value);
  const apply = () =>
    run(async () => {
      await api.setQos(output, value);
    });
  return (
    <>
      <div className="panel-bar">
        <Button
          data-testid="qos-apply"
          reason={forbidden ?? (running ? (isSame ? "These graphs hold already." : null) : "Deploy the output first.")}
          disabled={busy}
          onClick={() => void apply()}
        >
          Apply now
        </Button>
        <span className="quiet">without deploying the rest of the draft</span>
      </div>
      <ProblemNote problem={problem} />
    </>
  );
}
