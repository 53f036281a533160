import { useEffect, useRef, type KeyboardEvent } from "react";

import type { TraceEntry, TraceRows } from "../api/types";
import { count, duration, plural } from "../watch/format";
import { inferFields } from "../watch/rows";
import { RowTable } from "../watch/RowTable";
import { useDebug, walk } from "./actions";
import { boxLabel } from "./boxLabel";

/** What the latest step did, box by box; arrow keys walk along the boxes. */
export function TraceView() {
  const trace = useDebug((state) => state.trace);
  const cursor = useDebug((state) => state.cursor);
  const entry = trace[cursor];
  if (!entry)
    return (
      <p className="quiet pad">
        Pause, then step a train or one tuple: each box that it went through appears here with what went in and what came out.
      </p>
    );
  return (
    <div className="trace">
      <Path trace={trace} cursor={cursor} />
      <Step key={cursor} entry={entry} />
    </div>
  );
}

const total = (arcs: Record<string, TraceRows>) =>
  Object.values(arcs).reduce((all, one) => all + one.rows.length + one.truncated, 0);

function Path({ trace, cursor }: { trace: TraceEntry[]; cursor: number }) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector<HTMLElement>('[aria-selected="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [cursor]);
  const focusTrace = useDebug((state) => state.focusTrace);
  useEffect(() => {
    if (!focusTrace) return;
    list.current?.focus();
    useDebug.setState({ focusTrace: false });
  }, [focusTrace]);
  const pressed = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    walk(cursor + by);
  };
  return (
    <div
      ref={list}
      className="trace-path"
      role="listbox"
      aria-label="Boxes of the step, in flow order"
      aria-orientation="horizontal"
      aria-activedescendant={`trace-${cursor}`}
      tabIndex={0}
      data-testid="trace"
      onKeyDown={pressed}
    >
      {trace.map((entry, at) => (
        <div key={at} id={`trace-${at}`} role="option" className="trace-step" aria-selected={at === cursor} onClick={() => walk(at)}>
          <strong className="mono">{boxLabel(entry.box)}</strong>
          <span className="quiet">
            {count(total(entry.in))} → {count(total(entry.out))}
          </span>
        </div>
      ))}
    </div>
  );
}

function Step({ entry }: { entry: TraceEntry }) {
  const late = Object.entries(entry.late).filter(([, number]) => number > 0);
  return (
    <div className="trace-detail">
      <p className="quiet">
        <strong className="mono">{boxLabel(entry.box)}</strong> in superbox <span className="mono">{boxLabel(entry.superbox)}</span>,{" "}
        {duration(entry.seconds)}
        {total(entry.in) === 0 && "; nothing went in"}
        {total(entry.out) === 0 && "; nothing came out"}
        {late.map(([reason, number]) => (
          <span key={reason}>
            ; {count(number)} late ({reason})
          </span>
        ))}
      </p>
      <div className="trace-sides">
        <Side label="went in" arcs={entry.in} />
        <Side label="came out" arcs={entry.out} />
        {entry.held !== null && <Kept held={entry.held} tables={entry.kept} />}
      </div>
    </div>
  );
}

/** What the box remembers after the step, from its state tables; what it no longer needs may stay in them for a while. */
function Kept({ held, tables }: { held: number; tables: Record<string, TraceRows> }) {
  const names = Object.keys(tables);
  return (
    <div className={`trace-side ${names.length ? "" : "trace-kept"}`} data-testid="trace-kept">
      <h4>
        <span className="quiet">kept</span> {plural(held, "row")}
      </h4>
      {names.map((name) => (
        <ArcRows key={name} arc={name} label="state" unit="row" found={tables[name] ?? NOTHING} />
      ))}
    </div>
  );
}

const NOTHING: TraceRows = { rows: [], truncated: 0 };

function Side({ label, arcs }: { label: string; arcs: Record<string, TraceRows> }) {
  const names = Object.keys(arcs);
  if (!names.length) return null;
  return (
    <div className="trace-side">
      {names.map((arc) => (
        <ArcRows key={arc} arc={arc} label={label} unit="tuple" found={arcs[arc] ?? NOTHING} />
      ))}
    </div>
  );
}

function ArcRows({ arc, label, unit, found }: { arc: string; label: string; unit: string; found: TraceRows }) {
  // A column in which nothing stands says nothing.
  const names = Object.keys(found.rows[0] ?? {}).filter((name) => found.rows.some((row) => (row[name] ?? null) !== null));
  const rows = found.rows.map((row) => names.map((name) => row[name] ?? null));
  return (
    <>
      <h4>
        <span className="quiet">{label}</span> <span className="mono">{arc}</span>{" "}
        <span className="quiet">
          {plural(found.rows.length + found.truncated, unit)}
          {found.truncated ? `, ${found.rows.length} shown` : ""}
        </span>
      </h4>
      {rows.length > 0 && <RowTable label={`${label} on ${arc}`} fields={inferFields(names, rows)} rows={rows} />}
    </>
  );
}
