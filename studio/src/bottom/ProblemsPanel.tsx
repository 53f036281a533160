import type { Problem } from "../api/types";
import { nodeId } from "../canvas/graph";
import { problemRef } from "../canvas/model";
import { kindOf } from "../draft/document";
import { problemsOf } from "../draft/saying";
import { useDraft } from "../store/draft";
import { useUi } from "../store/ui";

function place(problem: Problem): string {
  return problem.path?.join(" › ") ?? problem.where ?? "";
}

/** What `check` finds in the draft; choosing a problem leads to it. */
export function ProblemsPanel() {
  const report = useDraft((state) => state.report);
  const refusal = useDraft((state) => state.refusal);
  const problems = problemsOf(report, refusal);
  const draft = useDraft((state) => state.draft);
  const { select, ask, openInspector } = useUi();
  const lead = (problem: Problem) => {
    const ref = problemRef(draft, problem);
    const kind = ref && kindOf(ref.section);
    if (!ref || !kind || kind === "arc") return;
    ask({ kind: "center", node: nodeId(ref.section, ref.name) });
    select({ kind, name: ref.name });
    openInspector("parameters");
  };
  if (!report) return <p className="muted">The draft has not been checked yet.</p>;
  if (!problems.length && !report.cautions.length) return <p className="muted" data-testid="problems">The draft is valid.</p>;
  return (
    <ul className="problem-list" data-testid="problems">
      {problems.map((problem, index) => (
        <li key={index}>
          <button type="button" onClick={() => lead(problem)}>
            <span className="problem-code bad">{problem.code}</span>
            <span className="problem-place mono">{place(problem)}</span>
            <span>
              {problem.detail}
              {problem.hint && <span className="muted"> {problem.hint}</span>}
            </span>
          </button>
        </li>
      ))}
      {report.cautions.map((caution, index) => (
        <li key={`caution ${index}`} className="caution">
          <span className="problem-code warn">{caution.code}</span>
          <span className="problem-place mono">{caution.where}</span>
          <span>{caution.message}</span>
        </li>
      ))}
    </ul>
  );
}
