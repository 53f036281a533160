import type { Field, PaletteEntry, Row } from "../api/types";
import { Table } from "../components/Table";

function Rows({ label, rows }: { label: string; rows: Row[] }) {
  const fields: Field[] = [...new Set(rows.flatMap((row) => Object.keys(row)))].map((name) => ({ name, type: "" }));
  return (
    <div className="example-rows">
      <span className="muted">{label}</span>
      {rows.length ? <Table label={label} fields={fields} rows={rows.map((row) => fields.map((field) => row[field.name] ?? null))} /> : <p className="muted">nothing</p>}
    </div>
  );
}

/** A few tuples in, and what comes out. */
export function Example({ example }: { example: NonNullable<PaletteEntry["example"]> }) {
  const inputs = Object.entries(example.in);
  return (
    <div className="example">
      {inputs.map(([stream, rows]) => (
        <Rows key={stream} label={inputs.length > 1 ? `in: ${stream}` : "in"} rows={rows} />
      ))}
      <Rows label="out" rows={example.out} />
    </div>
  );
}
