import { useState } from "react";

import { api } from "../api/client";
import { Button } from "../components/Button";
import { useForbidden } from "../store/role";
import { useEditReason, useSession } from "../store/session";
import { duration, plural } from "../watch/format";
import { ProblemNote } from "../watch/ProblemNote";
import { RowTable } from "../watch/RowTable";
import { scalar } from "../watch/scalar";
import { useAsk, type Asking } from "../watch/useAsk";
import { keepArc } from "./keepArc";
import { pointOf, unkeptArc, useAskable } from "./askable";
import { AttachedList } from "./AttachedList";
import { FollowedRows } from "./FollowedRows";
import { KeepQuery } from "./KeepQuery";
import { ResultChart } from "./ResultChart";
import { SqlEditor } from "./SqlEditor";
import { useSql } from "./sqlStore";

/** Ask in SQL: once over what is kept, or attached to a point, history first and then live. */
export function SqlPanel() {
  const { text, attached } = useSql();
  const { schema, points, arcs } = useAskable();
  const functions = useSession((state) => state.functions);
  const asking = useAsk();
  const once = () =>
    asking.run(async () => {
      if (!text.trim()) return;
      const began = performance.now();
      const table = await api.sql(text);
      useSql.setState({ table, seconds: (performance.now() - began) / 1000, attached: null });
    });
  return (
    <section className="panel sql-panel" aria-label="SQL">
      <div className="sql-ask">
        <SqlEditor label="SQL" value={text} schema={schema} functions={functions} onChange={(to) => useSql.setState({ text: to })} onRun={() => void once()} />
        <div className="panel-bar">
          <Button look="primary" icon="play" data-testid="sql-run" disabled={asking.busy || !text.trim()} title="Control+Enter" onClick={() => void once()}>
            Run once
          </Button>
          <Attach text={text} points={points} asking={asking} />
          <KeepQuery text={text} />
        </div>
        <ProblemNote problem={asking.problem} />
        {asking.problem && <KeepArc arc={unkeptArc(text, arcs)} />}
        <AttachedList />
      </div>
      <div className="sql-answer">
        {attached ? <FollowedRows key={attached} output={attached} /> : <Answer />}
      </div>
    </section>
  );
}

/** After a question about an arc that nothing keeps: offer a connection point. */
function KeepArc({ arc }: { arc: string | null }) {
  const reason = useEditReason();
  if (arc === null) return null;
  return (
    <div className="panel-bar">
      <Button icon="point" reason={reason} onClick={() => keepArc(arc)} data-testid="sql-keep">
        Add a connection point at {arc}
      </Button>
      <span className="quiet">It keeps what flows there from then on, and can be asked.</span>
    </div>
  );
}

/** Attach the query to a connection point or view. */
function Attach({ text, points, asking }: { text: string; points: string[]; asking: Asking }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const [since, setSince] = useState("");
  const forbidden = useForbidden("operator");
  const point = chosen ?? pointOf(text, points);
  if (point === null) return <span className="quiet">Add a connection point to attach queries to it.</span>;
  const attach = () =>
    asking.run(async () => {
      const { name } = await api.attach(point, text, scalar(since));
      useSql.setState({ attached: name });
    });
  return (
    <span className="inline-form">
      <Button icon="point" data-testid="sql-attach" reason={forbidden} disabled={asking.busy || !text.trim()} onClick={() => void attach()}>
        Attach to
      </Button>
      <select aria-label="Point to attach to" value={point} onChange={(event) => setChosen(event.target.value)}>
        {points.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <input aria-label="History from" className="mono" placeholder="all history" value={since} onChange={(event) => setSince(event.target.value)} />
    </span>
  );
}

/** The rows of a query that was run once. */
function Answer() {
  const { table, seconds } = useSql();
  const [selected, setSelected] = useState<number | null>(null);
  const [charted, setCharted] = useState(false);
  if (!table) return <p className="quiet pad">Tables, connection points and views can be asked. Control+Enter runs the query.</p>;
  return (
    <div className="following">
      <div className="panel-bar">
        <span className="quiet">
          {plural(table.rows.length, "row")}
          {table.truncated ? " (more exist)" : ""} in {duration(seconds)}
        </span>
        <span className="grow" />
        <Button aria-pressed={charted} icon="aggregate" onClick={() => setCharted(!charted)}>
          Chart
        </Button>
      </div>
      <div className="following-body">
        <RowTable label="Answer" fields={table.fields} rows={table.rows} selected={selected} onSelect={setSelected} empty="No row." />
        {charted && <ResultChart fields={table.fields} rows={table.rows} />}
      </div>
    </div>
  );
}
