import { useEffect, useMemo, useRef, useState } from "react";

import type { PaletteEntry } from "../api/types";
import { Icon } from "../components/Icon";
import { useSession } from "../store/session";
import { addEntry, connectTo, type Point } from "./actions";
import { fitsOf } from "./connecting";
import { fittingEntries } from "./fit";
import type { OutPort } from "./graph";
import { closeQuickMenu, focusCanvas, openQuickMenu, useQuickMenu } from "./menu";
import { useModel } from "./model";
import { moveChoices, type Choice } from "./moving";
import { iconOf } from "./nodes";

/** The ports that a wire can begin at. */
function portChoices(ports: OutPort[], at: Point, place: Point | null): Choice[] {
  return ports.map((port) => ({
    key: port.id,
    label: `from ${port.label || port.arc}`,
    note: `arc ${port.arc}`,
    icon: "point",
    run: () => openQuickMenu(at, place, [port]),
  }));
}

/** What an arc can go into: boxes to add, and inputs that are there. */
function choices(arc: string | null, palette: PaletteEntry[], place: { x: number; y: number } | null): Choice[] {
  const { graph } = useModel.getState();
  const entries = arc ? fittingEntries(graph, palette, arc) : palette;
  const added = entries.map((entry) => ({
    key: `add ${entry.section} ${entry.kind}`,
    label: entry.kind.replace("_", " "),
    note: entry.summary,
    icon: iconOf({ kind: "box", box: entry.kind }),
    run: () => void addEntry(entry, { ...(arc ? { arc } : {}), ...(place ? { at: place } : {}) }),
  }));
  if (!arc) return added;
  const inputs = [...fitsOf(arc)].flatMap(([id, ports]) => {
    const info = graph.nodes.get(id);
    return info ? [...ports].map((port) => ({
      key: `to ${id} ${port}`,
      label: `to ${info.name}${info.inputs.length > 1 ? `, ${info.inputs.find((each) => each.id === port)?.label}` : ""}`,
      note: `connect ${arc} to this ${info.box || info.kind}`,
      icon: iconOf(info),
      run: () => connectTo(arc, id, port),
    })) : [];
  });
  return [...added, ...inputs];
}

function Menu() {
  const { at, place, ports, moving } = useQuickMenu();
  const arc = ports.length === 1 ? (ports[0]?.arc ?? null) : null;
  const palette = useSession((state) => state.palette);
  const [text, setText] = useState("");
  const [cursor, setCursor] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const all = useMemo(() => {
    if (moving) return moveChoices();
    return ports.length > 1 ? portChoices(ports, at, place) : choices(arc, palette, place);
  }, [arc, ports, at, palette, place, moving]);
  const words = text.trim().toLowerCase();
  const found = words ? all.filter((each) => each.label.toLowerCase().includes(words) || each.note.toLowerCase().includes(words)).sort((a, b) => Number(b.label.startsWith(words)) - Number(a.label.startsWith(words))) : all;
  const current = Math.min(cursor, found.length - 1);
  useEffect(() => {
    const away = (event: PointerEvent) => {
      if (!box.current?.contains(event.target as globalThis.Node)) closeQuickMenu();
    };
    window.addEventListener("pointerdown", away, true);
    return () => window.removeEventListener("pointerdown", away, true);
  }, []);
  const leave = () => {
    closeQuickMenu();
    focusCanvas();
  };
  const choose = (choice: Choice | undefined) => {
    leave();
    choice?.run();
  };
  return (
    <div
      ref={box}
      className="quick-menu"
      role="dialog"
      aria-label={moving ? "Where the selection goes" : arc ? `What reads ${arc}` : ports.length ? "Ports to connect" : "Add to the network"}
      style={{ left: Math.min(at.x, window.innerWidth - 340), top: Math.min(at.y, window.innerHeight - 360) }}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === "Escape") leave();
        else if (event.key === "ArrowDown") setCursor(Math.min(current + 1, found.length - 1));
        else if (event.key === "ArrowUp") setCursor(Math.max(current - 1, 0));
        else if (event.key === "Enter") choose(found[current]);
        else return;
        event.preventDefault();
      }}
    >
      <input type="search" autoFocus aria-label="Filter" placeholder={moving ? "Move" : arc ? `${arc} →` : ports.length ? "Connect from" : "Add a box"} value={text} onChange={(event) => (setText(event.target.value), setCursor(0))} data-testid="quick-search" />
      <ul role="listbox" aria-label="Choices">
        {found.map((choice, index) => (
          <li
            key={choice.key}
            role="option"
            aria-selected={index === current}
            onClick={() => choose(choice)}
            ref={index === current ? (element) => element?.scrollIntoView({ block: "nearest" }) : undefined}
            data-testid={`quick-${choice.label.replaceAll(" ", "_")}`}
          >
            <Icon name={choice.icon} />
            <span className="quick-label">{choice.label}</span>
            <span className="quick-note">{choice.note}</span>
          </li>
        ))}
        {!found.length && <li className="muted">Nothing fits.</li>}
      </ul>
    </div>
  );
}

export function QuickMenu() {
  const open = useQuickMenu((state) => state.open);
  const ports = useQuickMenu((state) => state.ports);
  return open ? <Menu key={ports.map((port) => port.arc).join(" ")} /> : null;
}
