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
};

export const useQuickMenu = create<QuickMenuState>()(() => ({ open: false, at: { x: 0, y: 0 }, place: null, ports: [] }));

export function openQuickMenu(at: Point, place: Point | null, ports: OutPort[]): void {
  useQuickMenu.setState({ open: true, at, place, ports });
}

export const closeQuickMenu = (): void => useQuickMenu.setState({ open: false });
