import type { MoveFigures } from "../api/types";
import { useLive } from "../store/live";

const NONE: MoveFigures[] = [];

export type Ghost = { box: string; text: string; sifts: boolean };

/** The latest move of each box: it tells where the box runs now. */
function latest(moves: MoveFigures[]): MoveFigures[] {
  const passed = moves.filter((move) => move.tactic === "passed");
  return passed.filter((move, at) => passed.findLastIndex((each) => each.box === move.box) === at);
}

/** What runs in front of an input of a box although it was declared elsewhere; what runs in front of all of them is told once. */
export function ghostsAt(moves: MoveFigures[], target: string, input: number): Ghost[] {
  const moved = input === 0 ? latest(moves).filter((move) => move.target === target) : [];
  const sifting = moves.filter((move) => move.tactic === "sifted" && move.target === target && (move.side === "right" ? 1 : 0) === input);
  return [...moved, ...sifting].map((move) => ({ box: move.box, text: move.text, sifts: move.tactic === "sifted" }));
}

/** Why a box does not run where it is drawn; null if it does. */
export function movedAway(moves: MoveFigures[], box: string): string | null {
  return latest(moves).find((move) => move.box === box)?.text ?? null;
}

export const useGhosts = (target: string, input: number): Ghost[] => {
  const moves = useLive((state) => state.picture?.moves) ?? NONE;
  return moves.length ? ghostsAt(moves, target, input) : [];
};

export const useMovedAway = (box: string): string | null => useLive((state) => movedAway(state.picture?.moves ?? NONE, box));
