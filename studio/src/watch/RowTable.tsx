import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";

import type { Field, Json } from "../api/types";
import { exact, value } from "./format";
import { nextRow } from "./movement";
import { columnWidths, isNumeric, visibleRange } from "./rows";

const ROW = 24;

type Props = {
  label: string;
  fields: Field[];
  rows: Json[][];
  /** How many rows came before the first one; keeps the view still while old rows are dropped. */
  first?: number;
  /** Show the newest row, which is the last, as rows come. */
  follow?: boolean;
  /** Called with false when a person scrolls away from the end, with true when they return. */
  onFollow?: (follow: boolean) => void;
  selected?: number | null;
  onSelect?: (row: number) => void;
  onOpen?: (row: number) => void;
  empty?: string;
};

/** A table that draws only the rows in view. Arrow keys move the selection. */
export function RowTable(props: Props) {
  const { label, fields, rows, first = 0, follow = false, onFollow, selected = null } = props;
  const ref = useRef<HTMLDivElement>(null);
  const id = useId();
  const [view, setView] = useState({ top: 0, height: 400 });
  const widths = useMemo(() => columnWidths(fields, rows), [fields, rows]);
  const { from, to } = visibleRange(rows.length, view.top, view.height, ROW);

  useEffect(() => {
    const box = ref.current;
    if (!box || typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver(() => setView({ top: box.scrollTop, height: box.clientHeight }));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);

  const before = useRef(first);
  useLayoutEffect(() => {
    const box = ref.current;
    if (!box) return;
    if (follow) box.scrollTop = box.scrollHeight;
    else if (first !== before.current) box.scrollTop -= (first - before.current) * ROW;
    before.current = first;
  }, [rows, first, follow]);

  useLayoutEffect(() => {
    const box = ref.current;
    if (!box || selected === null) return;
    const top = selected * ROW;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + 2 * ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + 2 * ROW - box.clientHeight;
  }, [selected]);

  const scrolled = () => {
    const box = ref.current;
    if (!box) return;
    setView({ top: box.scrollTop, height: box.clientHeight });
    const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - ROW;
    if (atEnd !== follow) onFollow?.(atEnd);
  };
  const pressed = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(view.height / ROW) - 2);
    const to = nextRow(event.key, selected, rows.length, page);
    if (to !== null) props.onSelect?.(to);
    else if (event.key === "Enter" && selected !== null) props.onOpen?.(selected);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div className="rows" ref={ref} onScroll={scrolled}>
      <table
        className="table"
        role="grid"
        aria-label={label}
        aria-rowcount={rows.length}
        aria-activedescendant={selected === null ? undefined : `${id}-${selected}`}
        tabIndex={0}
        onKeyDown={pressed}
        style={{ width: `${widths.reduce((all, one) => all + one, 0)}ch` }}
      >
        <colgroup>
          {fields.map((field, at) => (
            <col key={field.name} style={{ width: `${widths[at]}ch` }} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {fields.map((field) => (
              <th key={field.name} scope="col" title={field.type} className={isNumeric(field.type) ? "number" : ""}>
                {field.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap height={from * ROW} />
          {rows.slice(from, to).map((row, at) => (
            <tr
              key={first + from + at}
              id={`${id}-${from + at}`}
              aria-rowindex={from + at + 1}
              aria-selected={selected === from + at}
              onClick={() => props.onSelect?.(from + at)}
              onDoubleClick={() => props.onOpen?.(from + at)}
            >
              {fields.map((field, column) => (
                <Cell key={field.name} found={row[column] ?? null} />
              ))}
            </tr>
          ))}
          <Gap height={(rows.length - to) * ROW} />
        </tbody>
      </table>
      {rows.length === 0 && props.empty && <p className="quiet">{props.empty}</p>}
    </div>
  );
}

function Gap({ height }: { height: number }) {
  return height > 0 ? <tr aria-hidden="true" className="gap" style={{ height }} /> : null;
}

function Cell({ found }: { found: Json }) {
  if (found === null)
    return (
      <td>
        <span className="null">null</span>
      </td>
    );
  const text = value(found);
  const whole = exact(found);
  const hides = text.length > 20 || text !== whole;
  return (
    <td className={typeof found === "number" ? "number" : undefined} title={hides ? whole : undefined}>
      {text}
    </td>
  );
}
