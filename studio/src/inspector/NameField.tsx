import { useState } from "react";

import { renameEntity } from "./renaming";
import { nameProblem, type Ref } from "../draft/document";
import { useDraft } from "../store/draft";
import { useEditReason } from "../store/session";

/** The name of what is selected; a new one is taken over with everything that refers to it. */
export function NameField({ target }: { target: Ref }) {
  const draft = useDraft((state) => state.draft);
  const reason = useEditReason();
  const [typed, setTyped] = useState<string | null>(null);
  const problem = typed === null ? null : nameProblem(draft, target, typed);
  const commit = () => {
    if (typed !== null && problem === null) renameEntity(target, typed);
    setTyped(null);
  };
  return (
    <div className="name-field">
      <input
        type="text"
        aria-label="Name"
        aria-invalid={problem !== null}
        value={typed ?? target.name}
        disabled={reason !== null}
        title={reason ?? "Rename"}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={commit}
        onKeyDown={(event) => {
          if (event.key === "Enter") commit();
          else if (event.key === "Escape") setTyped(null);
        }}
        data-testid="name"
      />
      {problem && <div className="field-problem">{problem}</div>}
    </div>
  );
}
