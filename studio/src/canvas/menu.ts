/** The quick menu: where it stands and what it offers. */

import { create } from "zustand";

import type { Point } from "./actions";
import type { OutPort } from "./graph";

type QuickMenuState = {
  open: boolean;
  /** On the screen. */
  at: Point;
  /** On the canvas; null: beside what is read. */
  place: Point | null;
  /** The port that the new box reads; of several one is chosen first. */
  ports: OutPort[];
  /** It is about where the selected boxes go. */
  moving: boolean;
};

export const useQuickMenu = create<QuickMenuState>()(() => ({ open: false, at: { x: 0, y: 0 }, place: null, ports: [], moving: false }));

export function openQuickMenu(at: Point, place: Point | null, ports: OutPort[]): void {
  useQuickMenu.setState({ open: true, at, place, ports, moving: false });
}

export function openMoveMenu(at: Point): void {
  useQuickMenu.setState({ open: true, at, place: null, ports: [], moving: true });
}

/** The canvas takes the focus: keys go on there. */
export const focusCanvas = (): void => document.querySelector<HTMLElement>(".canvas")?.focus({ preventScroll: true });

export const closeQuickMenu = (): void => useQuickMenu.setState({ open: false });
