import { useMemo, useState } from "react";

import type { Field, Json } from "../api/types";
import { Chart } from "../watch/Chart";
import { count } from "../watch/format";
import { chartColumns, chartLines, defaultChoice, isTimeColumn, type ChartChoice } from "./chartable";

/** Rows as lines over time, if a column is a time and another a number. */
export function ResultChart({ fields, rows }: { fields: Field[]; rows: Json[][] }) {
  const columns = useMemo(() => chartColumns(fields), [fields]);
  const [chosen, setChosen] = useState<Partial<ChartChoice>>({});
  const standard = defaultChoice(columns);
  const names = (found: Field[]) => found.map((field) => field.name);
  const choice = standard && valid({ ...standard, ...chosen }, standard, columns.x, columns.y);
  const lines = useMemo(() => choice && chartLines(fields, rows, choice), [fields, rows, choice?.x, choice?.y, choice?.by]); // eslint-disable-line react-hooks/exhaustive-deps
  if (!choice || !lines) return <p className="quiet pad">A chart needs a column with times and one with numbers.</p>;
  const time = isTimeColumn(fields, choice.x);
  return (
    <div className="result-chart">
      <div className="panel-bar">
        <Choice label="over" value={choice.x} options={names(columns.x)} onChange={(x) => setChosen({ ...chosen, x })} />
        <Choice label="value" value={choice.y} options={names(columns.y)} onChange={(y) => setChosen({ ...chosen, y })} />
        {columns.by.length > 0 && (
          <Choice
            label="a line for each"
            value={choice.by ?? ""}
            options={["", ...names(columns.by)]}
            onChange={(by) => setChosen({ ...chosen, by: by || null })}
          />
        )}
        {lines.omitted > 0 && <span className="quiet">{lines.omitted} more lines not shown</span>}
      </div>
      <Chart
        key={`${choice.x}-${choice.y}-${choice.by}`}
        title={choice.y}
        at={lines.at}
        series={lines.series}
        format={count}
        time={time}
        height="fill"
        zero={false}
      />
    </div>
  );
}

function valid(choice: ChartChoice, standard: ChartChoice, x: Field[], y: Field[]): ChartChoice {
  const has = (fields: Field[], name: string) => fields.some((field) => field.name === name);
  return has(x, choice.x) && has(y, choice.y) ? choice : standard;
}

type ChoiceProps = { label: string; value: string; options: string[]; onChange: (value: string) => void };

function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <label className="choice">
      {label}{" "}
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {options.map((option) => (
          <option key={option} value={option}>
            {option || "–"}
          </option>
        ))}
      </select>
    </label>
  );
}
