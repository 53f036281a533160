import { useState } from "react";

import { addHere } from "../canvas/actions";
import { nodeId } from "../canvas/graph";
import { focusCanvas } from "../canvas/menu";
import { iconOf } from "../canvas/nodes";
import { Dialog } from "../components/Dialog";
import { Icon } from "../components/Icon";
import { useDraft } from "../store/draft";
import { useEditReason, useSession } from "../store/session";
import { useUi } from "../store/ui";
import { find, type Found } from "./index";

function title(found: Found): { icon: ReturnType<typeof iconOf>; label: string; note: string } {
  if (found.type === "add") return { icon: iconOf({ kind: "box", box: found.entry.kind }), label: `Add ${found.entry.kind.replace("_", " ")}`, note: found.entry.summary };
  const { ref, kind, box, why } = found;
  return { icon: iconOf({ kind, box }), label: ref.name, note: [box || kind, why].filter(Boolean).join(" · ") };
}

/** Search and go: names, tags, descriptions, fields; and boxes to add. */
export function SearchDialog() {
  const { draft, report } = useDraft();
  const palette = useSession((state) => state.palette);
  const reason = useEditReason();
  const { setSearchOpen, select, ask } = useUi();
  const [text, setText] = useState("");
  const [cursor, setCursor] = useState(0);
  const found = find(draft, report, reason ? [] : palette, text);
  const current = Math.min(cursor, found.length - 1);
  const close = () => setSearchOpen(false);
  const choose = (choice: Found | undefined) => {
    close();
    if (choice?.type === "add") addHere(choice.entry);
    else if (choice) {
      ask({ kind: "center", node: nodeId(choice.ref.section, choice.ref.name) });
      select({ kind: choice.kind, name: choice.ref.name });
    }
    requestAnimationFrame(focusCanvas);
  };
  return (
    <Dialog title="Search" onClose={close}>
      <input
        type="search"
        autoFocus
        aria-label="Search by name, tag, description or field, or name a box to add"
        placeholder="Name, tag, field … or a box to add"
        value={text}
        onChange={(event) => (setText(event.target.value), setCursor(0))}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setCursor(Math.min(current + 1, found.length - 1));
          else if (event.key === "ArrowUp") setCursor(Math.max(current - 1, 0));
          else if (event.key === "Enter") choose(found[current]);
          else return;
          event.preventDefault();
        }}
        data-testid="search"
      />
      <ul className="choice-list dialog-body" role="listbox" aria-label="Found">
        {found.map((choice, index) => {
          const { icon, label, note } = title(choice);
          return (
            <li key={`${choice.type} ${label} ${note}`} role="option" aria-selected={index === current} onClick={() => choose(choice)} ref={index === current ? (element) => element?.scrollIntoView({ block: "nearest" }) : undefined}>
              <Icon name={icon} />
              <span className="quick-label">{label}</span>
              <span className="quick-note">{note}</span>
            </li>
          );
        })}
        {!found.length && <li className="muted">Nothing is called so.</li>}
      </ul>
    </Dialog>
  );
}
