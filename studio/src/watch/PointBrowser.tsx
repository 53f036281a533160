import { useEffect, useState } from "react";

import { api } from "../api/client";
import type { Table } from "../api/types";
import { follow } from "../ask/following";
import { Button } from "../components/Button";
import { CopyButton } from "../components/CopyButton";
import { useForbidden } from "../store/role";
import { useUi } from "../store/ui";
import { plural } from "./format";
import { PointFigures } from "./PointFigures";
import { ProblemNote } from "./ProblemNote";
import { HIDDEN, isTime, tupleJson } from "./rows";
import { RowTable } from "./RowTable";
import { scalar } from "./scalar";
import { useAsk } from "./useAsk";

const LIMIT = "1000";

/** The history of a connection point or view: browse it by key and time, replay a stretch of it. */
export function PointBrowser({ name }: { name: string }) {
  const [asked, setAsked] = useState({ key: "", since: "", until: "" });
  const [table, setTable] = useState<Table | null>(null);
  const [selected, setSelected] = useState<number | null>(null);
  const { run, problem, busy } = useAsk();
  useEffect(() => {
    void run(async () => setTable(await api.pointRows(name, { limit: LIMIT })));
  }, [name, run]);
  const browse = () =>
    run(async () => {
      const given = Object.entries(asked).filter(([, text]) => text.trim());
      setSelected(null);
      setTable(await api.pointRows(name, { ...Object.fromEntries(given), limit: LIMIT }));
    });
  const row = selected === null ? undefined : table?.rows[selected];
  const time = table?.fields.findIndex((one) => isTime(one.type) && !HIDDEN.has(one.name)) ?? -1;
  const moment = time >= 0 ? table?.rows[0]?.[time] : undefined;
  const example = moment ? `, such as ${String(moment)}` : "";
  const input = (field: keyof typeof asked, label: string, hint: string, title: string) => (
    <input
      aria-label={label}
      title={title}
      className="mono"
      placeholder={hint}
      value={asked[field]}
      onChange={(event) => setAsked({ ...asked, [field]: event.target.value })}
    />
  );
  return (
    <section className="panel" aria-label={`History of ${name}`}>
      <form
        className="panel-bar"
        onSubmit={(event) => {
          event.preventDefault();
          void browse();
        }}
      >
        <strong className="mono">{name}</strong>
        <PointFigures name={name} />
        <span className="grow" />
        {input("key", "Key", "key", "Only rows with this key; empty: all")}
        {input("since", "From", "from", `A value of the field that the point is in order of${example}; empty: the newest rows`)}
        {input("until", "Up to", "up to", `A value of the field that the point is in order of${example}; empty: now`)}
        <Button type="submit" icon="search" disabled={busy}>
          Browse
        </Button>
        <CopyButton label="Copy JSON" text={row && table ? tupleJson(table.fields, row) : null} reason="Select a row first." />
        <Replay point={name} since={asked.since} until={asked.until} />
        <span className="quiet fixed">{busy ? "reading …" : `${plural(table?.rows.length ?? 0, "row")}${table?.truncated ? " (more exist)" : ""}`}</span>
      </form>
      <ProblemNote problem={problem} />
      {table && (
        <RowTable
          label={`Rows of ${name}`}
          fields={table.fields}
          rows={table.rows}
          selected={selected}
          onSelect={setSelected}
          empty="Nothing is kept for this key and time."
        />
      )}
    </section>
  );
}

/** Run the stretch that is given through a query of its own and open its results. */
function Replay({ point, since, until }: { point: string; since: string; until: string }) {
  const { run, problem, busy } = useAsk();
  const [query, setQuery] = useState(`SELECT * FROM ${point}`);
  const [open, setOpen] = useState(false);
  const forbidden = useForbidden("operator");
  const openBottom = useUi((state) => state.openBottom);
  const replay = () =>
    run(async () => {
      const { name } = await api.replay(point, scalar(since), scalar(until), query);
      follow(name);
      openBottom("results");
    });
  if (!open)
    return (
      <Button icon="play" title="Run this stretch through a query of its own, and see its results" onClick={() => setOpen(true)}>
        Replay …
      </Button>
    );
  return (
    <span className="inline-form">
      <input
        aria-label="Query of the branch"
        className="mono wide"
        value={query}
        spellCheck={false}
        onChange={(event) => setQuery(event.target.value)}
      />
      <Button look="primary" icon="play" reason={forbidden} disabled={busy} onClick={() => void replay()}>
        Replay
      </Button>
      <Button look="quiet" icon="close" aria-label="Do not replay" onClick={() => setOpen(false)} />
      <ProblemNote problem={problem} />
    </span>
  );
}
