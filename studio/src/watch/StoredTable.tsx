import { useEffect, useState } from "react";

import { api } from "../api/client";
import type { Table } from "../api/types";
import { Button } from "../components/Button";
import { plural } from "./format";
import { ProblemNote } from "./ProblemNote";
import { RowTable } from "./RowTable";
import { useAsk } from "./useAsk";

/** The rows of a table of the network, as they are when asked. */
export function StoredTable({ name }: { name: string }) {
  const [table, setTable] = useState<Table | null>(null);
  const [selected, setSelected] = useState<number | null>(null);
  const { run, problem, busy } = useAsk();
  useEffect(() => {
    void run(async () => setTable(await api.sql(`SELECT * FROM ${name} LIMIT 1000`)));
  }, [name, run]);
  const reload = () => void run(async () => setTable(await api.sql(`SELECT * FROM ${name} LIMIT 1000`)));
  return (
    <section className="panel" aria-label={`Rows of ${name}`}>
      <div className="panel-bar">
        <strong className="mono">{name}</strong>
        <span className="grow" />
        <Button icon="redo" disabled={busy} onClick={reload}>
          Read again
        </Button>
        <span className="quiet fixed">{plural(table?.rows.length ?? 0, "row")}</span>
      </div>
      <ProblemNote problem={problem} />
      {table && (
        <RowTable
          label={`Rows of ${name}`}
          fields={table.fields}
          rows={table.rows}
          selected={selected}
          onSelect={setSelected}
          empty="The table is empty."
        />
      )}
    </section>
  );
}
