/** Keys that work everywhere in the studio, except while the person types. */

import { useEffect } from "react";

import { copySelected, groupSelected, pasteCopied, selectedArc } from "../canvas/actions";
import { focusCanvas } from "../canvas/menu";
import { stepAndWalk, togglePause } from "../debug/actions";
import { toggleBreakpoint } from "../debug/breakpoints";
import { isDirty } from "../draft/diff";
import { useDraft } from "../store/draft";
import { mayEdit } from "../store/session";
import { useUi } from "../store/ui";

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest("input, textarea, select, [contenteditable='true']") !== null;

type Keys = Record<string, () => unknown>;

const PLAIN: Keys = {
  "/": () => useUi.getState().setSearchOpen(true),
  f: () => useUi.getState().ask({ kind: "fit" }),
  g: () => mayEdit() && groupSelected(),
  p: () => togglePause(),
  ".": () => stepAndWalk("train"),
  ",": () => stepAndWalk("tuple"),
  b: () => {
    const arc = selectedArc();
    if (arc) void toggleBreakpoint(arc);
  },
};

/** With Ctrl or Cmd; these work while the person types, too, except those of text itself. */
const WITH_CTRL: Keys = {
  k: () => useUi.getState().setSearchOpen(true),
  s: () => mayEdit() && isDirty(useDraft.getState().diff) && useUi.getState().setDeployOpen(true),
};
const WITH_CTRL_OUTSIDE: Keys = {
  z: () => useDraft.getState().undo(),
  Z: () => useDraft.getState().redo(),
  y: () => useDraft.getState().redo(),
  c: () => copySelected(),
  v: () => mayEdit() && pasteCopied(),
};

export function actionOf(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">, typing: boolean): (() => unknown) | null {
  if (event.altKey) return null;
  if (event.ctrlKey || event.metaKey) return WITH_CTRL[event.key] ?? (typing ? null : (WITH_CTRL_OUTSIDE[event.key] ?? null));
  return typing ? null : (PLAIN[event.key] ?? null);
}

export function useShortcuts(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
      if (event.key === "Escape" && event.target instanceof Element && event.target.closest(".inspector, .side-panel, .bottom-panel")) {
        focusCanvas();
        return;
      }
      const selecting = event.key === "c" && Boolean(window.getSelection()?.toString());
      const action = selecting ? null : actionOf(event, isTyping(event.target));
      if (!action) return;
      event.preventDefault();
      action();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}
