/** The latest failure of a debugging action, shown beside the controls until the next action. */

import { create } from "zustand";

import type { Problem } from "../api/types";

export const useDebugProblem = create<{ problem: Problem | null }>()(() => ({ problem: null }));

export function report(problem: Problem | null): void {
  useDebugProblem.setState({ problem });
}
