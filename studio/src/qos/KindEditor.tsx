import { useId, useState } from "react";

import type { Declaration } from "../api/types";
import { Button } from "../components/Button";
import { graphOf, graphProblem, movePoint, removePoint, RULES, valueField, type Graph, type GraphKind } from "./graph";
import { GraphEditor } from "./GraphEditor";
import type { Observed } from "./observed";
import { useNumericFields } from "./useNumericFields";

type Props = {
  kind: GraphKind;
  output: string;
  qos: Declaration;
  observed: Observed[GraphKind];
  onDrag: (graph: Graph | null) => void;
  /** `on`: the field of a value graph; changes in a row with the same `merge` count as one for undo. */
  onChange: (graph: Graph | null, options?: { on?: string; merge?: string }) => void;
  onAllow: () => void;
};

/** One kind of graph: the graph itself, its points as numbers, and what `check` says of it. */
export function KindEditor({ kind, output, qos, observed, onDrag, onChange, onAllow }: Props) {
  const graph = graphOf(qos, kind) ?? [];
  const [dragged, setDragged] = useState<Graph | null>(null);
  const problem = graphProblem(dragged ?? graph, kind, qos.convex !== false);
  const drag = (moved: Graph | null) => {
    setDragged(moved);
    onDrag(moved);
  };
  return (
    <fieldset className="qos-kind">
      <legend>
        {RULES[kind].title}
        <Button look="quiet" icon="trash" aria-label={`Remove the ${kind} graph`} onClick={() => onChange(null)} />
      </legend>
      {kind === "value" && <ValueField output={output} on={valueField(qos)} onChange={(on) => onChange(graph, { on, merge: "field" })} />}
      <GraphEditor kind={kind} graph={graph} observed={observed} onDrag={drag} onChange={(to, merge) => onChange(to, { merge })} />
      {problem && (
        <p className="problem-note" role="alert">
          {problem}{" "}
          {problem.includes("steeper") && (
            <Button look="quiet" onClick={onAllow}>
              Take it as it is
            </Button>
          )}
        </p>
      )}
      <PointList kind={kind} graph={dragged ?? graph} onChange={onChange} />
    </fieldset>
  );
}

function ValueField({ output, on, onChange }: { output: string; on: string; onChange: (on: string) => void }) {
  const id = useId();
  const fields = useNumericFields(output);
  const choose = fields.length > 0 && (on === "" || fields.includes(on));
  return (
    <div className="field inline">
      <label htmlFor={id}>Field</label>
      {choose ? (
        <select id={id} className="mono" value={on} onChange={(event) => onChange(event.target.value)}>
          {on === "" && <option value="">choose one</option>}
          {fields.map((field) => (
            <option key={field}>{field}</option>
          ))}
        </select>
      ) : (
        <input id={id} className="mono" value={on} onChange={(event) => onChange(event.target.value)} />
      )}
    </div>
  );
}

/** The points as numbers, for exact values. */
function PointList({ kind, graph, onChange }: { kind: GraphKind; graph: Graph; onChange: (graph: Graph) => void }) {
  const set = (at: number, x: number, y: number) => {
    if (Number.isFinite(x) && Number.isFinite(y)) onChange(movePoint(graph, at, [x, y], kind, 1e-6));
  };
  return (
    <ul className="qos-points" aria-label={`Points of the ${kind} graph`}>
      {graph.map(([x, y], at) => (
        <li key={at}>
          <NumberBox label={`${RULES[kind].axis} of point ${at + 1}`} value={x} onChange={(to) => set(at, to, y)} />
          <span aria-hidden="true">→</span>
          <NumberBox label={`utility of point ${at + 1}`} value={y} onChange={(to) => set(at, x, to)} />
          <Button
            look="quiet"
            icon="close"
            aria-label={`Remove point ${at + 1}`}
            reason={graph.length > 2 ? null : "A graph needs two points."}
            onClick={() => onChange(removePoint(graph, at))}
          />
        </li>
      ))}
    </ul>
  );
}

/** A number that is taken over when the field is left or Enter is pressed. */
function NumberBox({ label, value, onChange }: { label: string; value: number; onChange: (value: number) => void }) {
  const [text, setText] = useState<string | null>(null);
  const take = () => {
    if (text !== null && text.trim() !== "" && Number(text) !== value) onChange(Number(text));
    setText(null);
  };
  return (
    <input
      className="mono number-box"
      inputMode="decimal"
      aria-label={label}
      value={text ?? String(value)}
      onChange={(event) => setText(event.target.value)}
      onBlur={take}
      onKeyDown={(event) => event.key === "Enter" && take()}
    />
  );
}
