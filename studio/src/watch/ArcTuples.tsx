import { useState, type ReactNode } from "react";

import type { Field, Json, Table } from "../api/types";
import { Button } from "../components/Button";
import { CopyButton } from "../components/CopyButton";
import { SendTuple } from "../debug/SendTuple";
import { useDeployed } from "../store/deployed";
import { useSample } from "../store/live";
import { ConditionEditor } from "./ConditionEditor";
import { plural } from "./format";
import { ProblemNote } from "./ProblemNote";
import { HIDDEN, isNumeric, rowObject, tupleJson } from "./rows";
import { RowTable } from "./RowTable";

const LIMIT = 200;
const ONLY_STREAMS = "Only streams take tuples: select the stream that leads here.";
type Frozen = { table: Table; by: "choice" | "scroll" };
const NO_FIELDS: Field[] = [];
const NO_ROWS: Json[][] = [];

/** The latest tuples of an arc, live: filter them, freeze, copy one, edit one and send it. */
export function ArcTuples({ arc, lead }: { arc: string; lead?: ReactNode }) {
  const [filter, setFilter] = useState("");
  const [where, setWhere] = useState<string | null>(null);
  const [frozen, setFrozen] = useState<Frozen | null>(null);
  const [selected, setSelected] = useState<number | null>(null);
  const [editing, setEditing] = useState<string | null>(null);
  const sample = useSample(arc, LIMIT, where);
  const isStream = useDeployed((state) => state.network?.streams?.[arc] !== undefined);
  const table = frozen?.table ?? sample?.table ?? null;
  const fields = table?.fields ?? NO_FIELDS;
  const rows = table?.rows ?? NO_ROWS;
  const row = selected === null ? undefined : rows[selected];

  const freeze = (by: Frozen["by"]) => {
    if (table) setFrozen({ table, by });
  };
  const follow = () => {
    setFrozen(null);
    setSelected(null);
  };
  // What the filter finds is live: rows from before would not show what it does.
  const apply = () => {
    setWhere(filter.trim() || null);
    follow();
  };
  const choose = (at: number) => {
    freeze("choice");
    setSelected(at);
  };
  // Scrolling away from the newest row holds the rows still; returning to it follows again.
  const scrolled = (atEnd: boolean) => {
    if (!atEnd && !frozen) freeze("scroll");
    else if (atEnd && frozen?.by === "scroll") follow();
  };
  const edit = () => {
    if (row) setEditing(JSON.stringify(sendable(fields, row), null, 2));
  };
  return (
    <section className="panel" aria-label={`Tuples of ${arc}`}>
      <form
        className="panel-bar"
        onSubmit={(event) => {
          event.preventDefault();
          apply();
        }}
      >
        <strong className="mono">{arc}</strong>
        {lead}
        <ConditionEditor
          arc={arc}
          label="Filter, a SQL condition"
          placeholder={`filter, such as ${example(fields)}`}
          value={filter}
          onChange={setFilter}
          onEnter={apply}
          testId="tuples-filter"
        />
        <Button type="submit" icon="filter" disabled={(filter.trim() || null) === where}>
          Filter
        </Button>
        <Button
          icon={frozen ? "play" : "pause"}
          aria-pressed={frozen !== null}
          onClick={() => (frozen ? follow() : freeze("choice"))}
          disabled={!table}
        >
          {frozen ? "Follow" : "Freeze"}
        </Button>
        <CopyButton label="Copy JSON" text={row ? tupleJson(fields, row) : null} reason="Select a row first." />
        <Button icon="update" reason={isStream ? (row ? null : "Select a row first.") : ONLY_STREAMS} onClick={edit}>
          Edit and send
        </Button>
        <span className="quiet fixed">
          {frozen ? "frozen · " : ""}
          {plural(rows.length, "tuple")}
        </span>
      </form>
      <ProblemNote problem={sample?.problem ?? null} />
      <RowTable
        label={`Latest tuples of ${arc}, newest last`}
        fields={fields}
        rows={rows}
        follow={!frozen}
        onFollow={scrolled}
        selected={selected}
        onSelect={choose}
        onOpen={isStream ? edit : undefined}
        empty={sample ? (where ? "No tuple satisfies the filter yet." : "No tuple has passed here yet.") : "Looking …"}
      />
      {editing !== null && <SendTuple stream={arc} start={editing} onClose={() => setEditing(null)} />}
    </section>
  );
}

/** A condition over the last number of the tuples. */
const example = (fields: Field[]) =>
  `${fields.findLast((field) => isNumeric(field.type) && !HIDDEN.has(field.name))?.name ?? "x"} > 10`;

const sendable = (fields: Field[], row: Json[]) =>
  Object.fromEntries(Object.entries(rowObject(fields, row)).filter(([name]) => !name.startsWith("_")));
