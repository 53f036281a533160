import { Button } from "../components/Button";
import { discardDraft } from "../deploy/discard";
import { loadDraft, useDraft } from "../store/draft";
import { useUi } from "../store/ui";

/** What the person should know about the draft: it could not be loaded, or is behind what runs. */
export function Notices() {
  const problem = useDraft((state) => state.problem);
  const outdated = useDraft((state) => state.outdated);
  const message = useUi((state) => state.message);
  const tone = useUi((state) => state.messageTone);
  const tell = useUi((state) => state.tell);
  if (problem)
    return (
      <div className="notice bad stage-notice" role="alert">
        {problem.detail}
        <Button onClick={() => void loadDraft()}>Load again</Button>
      </div>
    );
  if (message)
    return (
      <div className={`notice ${tone} stage-notice`} role={tone === "bad" ? "alert" : "status"} data-testid="message">
        {message}
        <Button onClick={() => tell(null)}>Close</Button>
      </div>
    );
  if (outdated)
    return (
      <div className="notice warn stage-notice" role="alert" data-testid="outdated">
        Somebody else has changed the network since your draft began.
        <Button onClick={() => void discardDraft()}>Discard my draft</Button>
      </div>
    );
  return null;
}
