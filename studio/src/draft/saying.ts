import type { CheckReport, Problem } from "../api/types";

/** A problem in one line: its code, what is wrong, and the likely fix; null if there is none. */
export const saying = (problem: Problem | null | undefined): string | null =>
  problem ? `${problem.code}: ${problem.detail || problem.title}${problem.hint ? `; ${problem.hint}` : ""}` : null;

/** What `check` finds, and why a deployment was refused if `check` does not say the same. */
export function problemsOf(report: CheckReport | null, refusal: Problem | null): Problem[] {
  const found = report?.problems ?? [];
  const told = refusal && !found.some((problem) => problem.code === refusal.code && problem.detail === refusal.detail);
  return told ? [...found, refusal] : found;
}
