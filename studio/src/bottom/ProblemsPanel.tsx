import type { Problem } from "../api/types";
import { nodeId } from "../canvas/graph";
import { problemRef } from "../canvas/model";
import { Button } from "../components/Button";
import { kindOf } from "../draft/document";
import { problemsOf } from "../draft/saying";
import { checkNow, useDraft } from "../store/draft";
import { useUi } from "../store/ui";
import { ProblemNote } from "../watch/ProblemNote";

function place(problem: Problem): string {
  return problem.path?.join(" › ") ?? problem.where ?? "";
}

/** The server could not check the draft as it is now. */
function Unchecked({ problem }: { problem: Problem }) {
  return (
    <div className="pad" data-testid="problems-unchecked">
      <p className="muted">The draft as it is now has not been checked:</p>
      <ProblemNote problem={problem} />
      <Button onClick={() => void checkNow()}>Check again</Button>
    </div>
  );
}

/** What `check` finds in the draft; choosing a problem leads to it. */
export function ProblemsPanel() {
  const report = useDraft((state) => state.report);
  const unchecked = useDraft((state) => state.unchecked);
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
  if (unchecked && !problems.length) return <Unchecked problem={unchecked} />;
  if (!report) return <p className="muted">The draft has not been checked yet.</p>;
  if (!problems.length && !report.cautions.length) return <p className="muted" data-testid="problems">The draft is valid.</p>;
  return (
    <>
      {unchecked && <Unchecked problem={unchecked} />}
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
    </>
  );
}
