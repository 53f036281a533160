import { useCallback, useState } from "react";

import { ProblemError } from "../api/client";
import type { Problem } from "../api/types";

export type Asking = {
  busy: boolean;
  problem: Problem | null;
  /** Run a call; a problem is kept and shown instead of thrown. Returns whether it went well. */
  run: (call: () => Promise<void>) => Promise<boolean>;
  forget: () => void;
};

/** Calls of the server from a component: whether one is under way, and what went wrong. */
export function useAsk(): Asking {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const run = useCallback(async (call: () => Promise<void>) => {
    setBusy(true);
    setProblem(null);
    try {
      await call();
      return true;
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      setProblem(error.problem);
      return false;
    } finally {
      setBusy(false);
    }
  }, []);
  const forget = useCallback(() => setProblem(null), []);
  return { busy, problem, run, forget };
}
