import type { Field as TableField, Json } from "../api/types";

export function cellText(value: Json): string {
  if (value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

type Props = {
  label: string;
  fields: TableField[];
  rows: Json[][];
  selected?: number | null;
  onSelect?: (row: number) => void;
};

/** Rows as a plain table; NULL is shown as a quiet word. */
export function Table({ label, fields, rows, selected, onSelect }: Props) {
  return (
    <table className="table" aria-label={label}>
      <thead>
        <tr>
          {fields.map((field) => (
            <th key={field.name} scope="col" title={field.type}>
              {field.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, at) => (
          <tr key={at} aria-selected={selected === at || undefined} onClick={() => onSelect?.(at)}>
            {row.map((value, column) => (
              <td key={column} className={typeof value === "number" ? "number" : undefined}>
                {value === null ? <span className="null">null</span> : cellText(value)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
