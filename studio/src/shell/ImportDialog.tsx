import { useState } from "react";

import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { parseNetwork } from "../draft/yaml";
import { useDraft } from "../store/draft";
import { useEditReason } from "../store/session";
import { useUi } from "../store/ui";

/** Take a network from a file or from pasted text; it becomes the draft, and undo brings the old one back. */
export function ImportDialog({ start = "", onClose }: { start?: string; onClose: () => void }) {
  const [text, setText] = useState(start);
  const reason = useEditReason();
  const running = useDraft((state) => state.draft.network);
  const found = text.trim() ? parseNetwork(text) : null;
  const take = () => {
    if (!found || "error" in found) return;
    // The name is that of the state and the layout: it stays.
    useDraft.getState().edit((document) => ({ ...found.network, network: document.network }));
    useUi.getState().ask({ kind: "fit" });
    onClose();
  };
  return (
    <Dialog title="Import a network" onClose={onClose} wide>
      <div className="dialog-body">
        <p className="muted">The network becomes your draft. Nothing runs until you deploy it.</p>
        <Field label="File (YAML or JSON)">
          {(id) => <input id={id} type="file" accept=".yaml,.yml,.json" onChange={(event) => void event.target.files?.[0]?.text().then(setText)} data-testid="import-file" />}
        </Field>
        <Field label="or paste it" problem={found && "error" in found ? found.error : null}>
          {(id, described) => <textarea id={id} aria-describedby={described} className="mono" rows={14} value={text} spellCheck={false} onChange={(event) => setText(event.target.value)} data-testid="import-text" />}
        </Field>
        {found && "network" in found && found.network.network !== running && (
          <p className="muted">
            It keeps the name of the network that runs: <code>{running}</code>.
          </p>
        )}
      </div>
      <footer>
        <Button onClick={onClose}>Cancel</Button>
        <Button look="primary" reason={reason} disabled={!found || "error" in found} onClick={take} data-testid="import-confirm">
          Take it as draft
        </Button>
      </footer>
    </Dialog>
  );
}
