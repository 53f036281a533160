import { useState } from "react";

import { Button } from "../components/Button";
import { freeName, nameProblem } from "../draft/document";
import { put } from "../draft/edits";
import { useDraft } from "../store/draft";
import { useEditReason } from "../store/session";
import { useUi } from "../store/ui";

/** Put the query into the draft as a standing query. */
export function KeepQuery({ text }: { text: string }) {
  const [name, setName] = useState<string | null>(null);
  const reason = useEditReason();
  const draft = useDraft((state) => state.draft);
  if (name === null)
    return (
      <Button icon="query" reason={reason ?? (text.trim() ? null : "Write a query first.")} title="Its results are computed all the time, from the next deployment on" onClick={() => setName(freeName(draft, "queries", "query"))}>
        Keep as a standing query …
      </Button>
    );
  const problem = nameProblem(draft, { section: "queries", name: "" }, name);
  const keep = () => {
    useDraft.getState().edit((document) => put(document, { section: "queries", name }, text.trim()));
    useUi.getState().select({ kind: "query", name });
    useUi.getState().ask({ kind: "center", node: name });
    setName(null);
  };
  return (
    <span className="inline-form">
      <input aria-label="Name of the standing query" className="mono" value={name} onChange={(event) => setName(event.target.value)} autoFocus />
      <Button look="primary" reason={reason ?? problem} onClick={keep}>
        Add to the draft
      </Button>
      <Button look="quiet" icon="close" aria-label="Do not keep it" onClick={() => setName(null)} />
    </span>
  );
}
