/** The quick menu: where it stands and what it offers. */

import { create } from "zustand";

import type { Point } from "./actions";

type QuickMenuState = {
  open: boolean;
  /** On the screen. */
  at: Point;
  /** On the canvas; null: beside what is read. */
  place: Point | null;
  /** The arc that the new box reads. */
  arc: string | null;
};

export const useQuickMenu = create<QuickMenuState>()(() => ({ open: false, at: { x: 0, y: 0 }, place: null, arc: null }));

export function openQuickMenu(at: Point, place: Point | null, arc: string | null): void {
  useQuickMenu.setState({ open: true, at, place, arc });
}

export const closeQuickMenu = (): void => useQuickMenu.setState({ open: false });
