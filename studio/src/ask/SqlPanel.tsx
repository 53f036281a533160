import { useEffect, useState } from "react";

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

const SHORTENED = { minWidth: 0, overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap" } as const;
const WRITE_FIRST = "Write a query first.";
/** So many names are offered to begin with. */
const EXAMPLES = 4;

/** Ask in SQL: once over what is kept, or attached to a point, history first and then live. */
export function SqlPanel() {
  const { text, attached } = useSql();
  const { schema, points, arcs } = useAskable();
  const functions = useSession((state) => state.functions);
  const asking = useAsk();
  const [running, setRunning] = useState(false);
  const once = async () => {
    if (asking.busy || !text.trim()) return;
    useSql.setState({ attached: null });
    setRunning(true);
    await asking.run(async () => {
      const began = performance.now();
      const table = await api.sql(text);
      useSql.setState({ table, asked: text, seconds: (performance.now() - began) / 1000 });
    });
    setRunning(false);
  };
  return (
    <section className="panel sql-panel" aria-label="SQL">
      <div className="sql-ask">
        <SqlEditor label="SQL" value={text} schema={schema} functions={functions} onChange={(to) => useSql.setState({ text: to })} onRun={() => void once()} />
        <div className="panel-bar">
          <Button look="primary" icon="play" data-testid="sql-run" disabled={asking.busy} reason={text.trim() ? null : WRITE_FIRST} title="What is kept now, once (Control+Enter)" onClick={() => void once()}>
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
        {attached ? <FollowedRows key={attached} output={attached} /> : running ? <Running /> : <Answer names={Object.keys(schema)} />}
      </div>
    </section>
  );
}

/** A first question may take a while: say that it is under way, and for how long. */
function Running() {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((before) => before + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return (
    <p className="quiet pad" role="status">
      Asking …{seconds > 1 ? ` ${seconds} s` : ""}
    </p>
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
      <Button icon="point" data-testid="sql-attach" reason={forbidden ?? (text.trim() ? null : WRITE_FIRST)} disabled={asking.busy} title="Runs until it is detached: first over the history, then over what comes" onClick={() => void attach()}>
        Attach to
      </Button>
      <select aria-label="Point to attach to" value={point} onChange={(event) => setChosen(event.target.value)}>
        {points.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <input aria-label="History from" className="mono" placeholder="all history" title="How far back to begin, such as 2026-01-01T08:00:00Z; empty: all that is kept" value={since} onChange={(event) => setSince(event.target.value)} />
    </span>
  );
}

/** The rows of a query that was run once. */
function Answer({ names }: { names: string[] }) {
  const { table, asked, seconds } = useSql();
  const [selected, setSelected] = useState<number | null>(null);
  const [charted, setCharted] = useState(false);
  if (!table)
    return (
      <div className="pad">
        <p className="quiet">Tables, connection points and views can be asked{names.length ? ". Begin with" : "; there is none yet."}</p>
        <div className="chips">
          {names.slice(0, EXAMPLES).map((name) => (
            <Button key={name} onClick={() => useSql.setState({ text: `SELECT * FROM ${/^\w+$/.test(name) ? name : `\`${name}\``}` })}>
              <span className="mono">SELECT * FROM {name}</span>
            </Button>
          ))}
        </div>
      </div>
    );
  return (
    <div className="following">
      <div className="panel-bar">
        <span className="quiet">
          {plural(table.rows.length, "row")}
          {table.truncated ? " (more exist)" : ""} in {duration(seconds)}
        </span>
        <span className="quiet mono" title={asked} style={SHORTENED}>
          {asked}
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
