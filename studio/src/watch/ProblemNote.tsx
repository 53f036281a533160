import type { Problem } from "../api/types";

/** An error in words, with its code and the likely fix. */
export function ProblemNote({ problem }: { problem: Problem | null }) {
  if (!problem) return null;
  return (
    <p className="problem-note" role="alert">
      <code>{problem.code}</code> {problem.detail || problem.title}
      {problem.hint && <span className="quiet"> {problem.hint}</span>}
    </p>
  );
}
