import type { DropFigures } from "../api/types";
import { useLive } from "../store/live";

const NONE: DropFigures[] = [];

/** The drop boxes that the load shedder has put into arcs. */
export function useDrops(): DropFigures[] {
  return useLive((state) => state.picture?.drops) ?? NONE;
}
