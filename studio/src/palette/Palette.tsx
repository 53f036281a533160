import { useState } from "react";

import type { PaletteEntry, Section } from "../api/types";
import { addHere } from "../canvas/actions";
import { iconOf } from "../canvas/nodes";
import { Button } from "../components/Button";
import { Icon } from "../components/Icon";
import { kindOf } from "../draft/document";
import { useEditReason, useSession } from "../store/session";
import { DRAGGED_KIND } from "./dragging";
import { Example } from "./Example";

const HEADINGS: [string, (section: Section) => boolean][] = [
  ["In and out", (section) => section === "streams" || section === "outputs" || section === "tables"],
  ["Boxes", (section) => section === "boxes" || section === "superboxes"],
  ["Queries and history", (section) => section === "queries" || section === "connection_points" || section === "views"],
];

function Entry({ entry, open, onOpen }: { entry: PaletteEntry; open: boolean; onOpen: () => void }) {
  const reason = useEditReason();
  const label = entry.kind.replaceAll("_", " ");
  return (
    <li className={`palette-entry ${open ? "open" : ""}`}>
      <div className="palette-row">
        <button
          type="button"
          className="palette-add"
          draggable={reason === null}
          disabled={reason !== null}
          title={reason ?? entry.summary}
          onDragStart={(event) => {
            event.dataTransfer.setData(DRAGGED_KIND, `${entry.section}/${entry.kind}`);
            event.dataTransfer.effectAllowed = "copy";
          }}
          onClick={() => addHere(entry)}
          data-testid={`palette-${entry.kind}`}
        >
          <Icon name={iconOf({ kind: kindOf(entry.section) === "box" ? "box" : ((kindOf(entry.section) ?? "box") as "box"), box: entry.kind })} />
          <span>{label}</span>
        </button>
        <Button look="quiet" icon="info" aria-expanded={open} aria-label={`What ${label} means`} title="What it means" onClick={onOpen} />
      </div>
      {open && (
        <div className="palette-meaning">
          <p>{entry.summary}</p>
          {entry.example && <Example example={entry.example} />}
        </div>
      )}
    </li>
  );
}

/** What can be added: drag it onto the canvas or an arc, or press it. */
export function Palette() {
  const palette = useSession((state) => state.palette);
  const [open, setOpen] = useState<string | null>(null);
  const [text, setText] = useState("");
  const words = text.trim().toLowerCase();
  const matches = (entry: PaletteEntry) => !words || `${entry.kind} ${entry.summary}`.toLowerCase().includes(words);
  return (
    <>
      <input type="search" className="palette-filter" placeholder="Filter" aria-label="Filter the palette" value={text} onChange={(event) => setText(event.target.value)} />
      {HEADINGS.map(([heading, holds]) => {
        const found = palette.filter((entry) => holds(entry.section) && matches(entry));
        if (!found.length) return null;
        return (
          <section key={heading}>
            <h3 className="side-heading">{heading}</h3>
            <ul className="palette-list">
              {found.map((entry) => {
                const key = `${entry.section}/${entry.kind}`;
                return <Entry key={key} entry={entry} open={open === key} onOpen={() => setOpen(open === key ? null : key)} />;
              })}
            </ul>
          </section>
        );
      })}
    </>
  );
}
