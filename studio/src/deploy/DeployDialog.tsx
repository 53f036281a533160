import { useCallback, useEffect, useState } from "react";

import { api, ProblemError } from "../api/client";
import type { ChangeReport, NetworkDocument, Problem } from "../api/types";
import { nodeId } from "../canvas/graph";
import { problemRef } from "../canvas/model";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { same } from "../draft/diff";
import { kindOf } from "../draft/document";
import { adoptDeployed, useDraft } from "../store/draft";
import { useUi } from "../store/ui";
import { discardDraft } from "./discard";
import { reportLines, summary } from "./words";

/** Statuses by which the server says what is wrong with a network. */
const REFUSED = new Set([400, 409, 422]);
const isConflict = (problem: Problem | null) => problem?.code === "CHANGED_MEANWHILE" || problem?.status === 412;

async function attempt<T>(work: Promise<T>): Promise<{ value: T } | { problem: Problem }> {
  try {
    return { value: await work };
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return { problem: error.problem };
  }
}

/** The version that runs if it is this network; else null. */
async function versionOf(network: NetworkDocument): Promise<string | null> {
  const found = await attempt(api.network());
  return "value" in found && same(found.value.network, network) ? found.value.version : null;
}

function Report({ report }: { report: ChangeReport }) {
  return (
    <>
      <p>{summary(report)}</p>
      <ul className="change-list">
        {reportLines(report).map((line) => (
          <li key={`${line.sign}${line.name}`} className={line.careful ? "careful" : ""}>
            <span className={`change-sign sign-${line.sign}`}>{line.sign}</span>
            <span className="mono">{line.name}</span>
            <span className="muted">{line.text}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function Refusal({ problem, onLead }: { problem: Problem; onLead: () => void }) {
  const found = problemRef(useDraft.getState().draft, problem);
  return (
    <div className="notice bad" role="alert">
      <div>
        <div>
          <strong>{problem.code}</strong> {problem.detail || problem.title}
        </div>
        {problem.hint && <div>{problem.hint}</div>}
        {found && (
          <Button onClick={onLead} className="refusal-lead">
            Show {found.name}
          </Button>
        )}
      </div>
    </div>
  );
}

/** What a deployment would change, then the deployment. */
export function DeployDialog() {
  const setDeployOpen = useUi((state) => state.setDeployOpen);
  const [draft] = useState<NetworkDocument>(() => useDraft.getState().draft);
  const [report, setReport] = useState<ChangeReport | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const [asked, setAsked] = useState(0);
  const close = () => setDeployOpen(false);
  const refuse = useCallback(
    (found: Problem) => {
      setProblem(found);
      // The reason stays at the box after the dialog is closed.
      if (REFUSED.has(found.status) && useDraft.getState().draft === draft) useDraft.setState({ refusal: found });
    },
    [draft],
  );

  useEffect(() => {
    let current = true;
    void attempt(api.preview(draft)).then((found) => {
      if (!current) return;
      if ("value" in found) setReport(found.value);
      else refuse(found.problem);
    });
    return () => {
      current = false;
    };
  }, [draft, refuse, asked]);
  /** The server could not say now; it may later. */
  const again = () => {
    setProblem(null);
    setReport(null);
    setAsked(asked + 1);
  };

  const deploy = async (overwrite: boolean) => {
    setBusy(true);
    const found = await attempt(api.deploy(draft, overwrite ? undefined : useDraft.getState().version));
    // The answer to an earlier attempt may have been lost: then the draft runs already.
    const version = "value" in found ? found.value : isConflict(found.problem) ? await versionOf(draft) : null;
    if (version !== null) {
      await adoptDeployed(draft, version);
      return close();
    }
    setBusy(false);
    if ("problem" in found) refuse(found.problem);
  };
  const lead = () => {
    const ref = problem && problemRef(draft, problem);
    const kind = ref && kindOf(ref.section);
    close();
    if (!ref || !kind || kind === "arc") return;
    useUi.getState().ask({ kind: "center", node: nodeId(ref.section, ref.name) });
    useUi.getState().select({ kind, name: ref.name });
    useUi.getState().openInspector("parameters");
  };
  const discard = async () => {
    await discardDraft();
    close();
  };
  const conflict = isConflict(problem);
  const refused = problem !== null && REFUSED.has(problem.status);
  return (
    <Dialog title="Deploy the draft" onClose={close}>
      <div className="dialog-body" aria-live="polite">
        {!report && !problem && <p className="muted">Asking what would change …</p>}
        {report && !problem && <Report report={report} />}
        {problem && !conflict && <Refusal problem={problem} onLead={lead} />}
        {conflict && (
          <div className="notice warn" role="alert" data-testid="deploy-conflict">
            Somebody else has changed the network since your draft began. Reload takes theirs in the place of your draft, which undo brings back; overwrite replaces theirs by your draft.
          </div>
        )}
      </div>
      <footer>
        <Button onClick={close}>Cancel</Button>
        {conflict ? (
          <>
            <Button onClick={() => void discard()}>Reload theirs</Button>
            <Button look="danger" disabled={busy} onClick={() => void deploy(true)} data-testid="deploy-overwrite">
              Overwrite
            </Button>
          </>
        ) : problem && !refused ? (
          <Button look="primary" autoFocus onClick={again} data-testid="deploy-again">
            Try again
          </Button>
        ) : (
          <Button key={report ? "ready" : "asking"} look="primary" autoFocus disabled={busy || !report} reason={refused ? "This draft cannot be deployed: the reason is above." : null} onClick={() => void deploy(false)} data-testid="deploy-confirm">
            {busy ? "Deploying …" : "Deploy"}
          </Button>
        )}
      </footer>
    </Dialog>
  );
}
