/** Breakpoints on arcs. */

import { api, ProblemError } from "../api/client";
import { liveStore } from "../store/live";
import { report } from "./problem";

/** Remove the breakpoints of an arc, or set one without a condition if it has none. */
export async function toggleBreakpoint(arc: string): Promise<void> {
  const known = (liveStore.getState().picture?.debug.breakpoints ?? []).filter((one) => one.arc === arc);
  try {
    if (known.length) for (const one of known) await api.removeBreakpoint(one.id);
    else await api.setBreakpoint(arc, null);
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    report(error.problem);
  }
}
