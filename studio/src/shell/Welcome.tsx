import { useState, type ClipboardEvent, type DragEvent } from "react";

import { api, ProblemError } from "../api/client";
import type { Starter } from "../api/types";
import { Button } from "../components/Button";
import { put } from "../draft/edits";
import { freeName } from "../draft/document";
import { adoptDeployed, useDraft } from "../store/draft";
import { useEditReason, useSession } from "../store/session";
import { useUi } from "../store/ui";

function Starters() {
  const starters = useSession((state) => state.starters);
  const reason = useEditReason();
  const take = (starter: Starter) => {
    // The network that runs keeps its name: its state and its layout go by it.
    useDraft.getState().edit((document) => ({ ...starter.network, network: document.network }));
    useUi.getState().ask({ kind: "fit" });
  };
  return (
    <ul className="starters">
      {starters.slice(0, 3).map((starter) => (
        <li key={starter.name}>
          <button type="button" className="starter" disabled={reason !== null} title={reason ?? undefined} onClick={() => take(starter)} data-testid={`starter-${starter.name}`}>
            <strong>{starter.title}</strong>
            <span className="muted">{starter.description}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Declare a stream that fits the rows, run it, and send the rows. */
async function takeCsv(csv: string, name: string): Promise<string> {
  const { draft, edit, version } = useDraft.getState();
  const stream = freeName(draft, "streams", name);
  const found = await api.infer(csv, stream);
  edit((document) => put(put(document, { section: "streams", name: found.stream }, found.declaration), { section: "outputs", name: "rows" }, { from: found.stream }));
  const made = useDraft.getState().draft;
  await api.deploy(made, version);
  await adoptDeployed(made);
  const sent = await api.enqueueCsv(found.stream, csv);
  useUi.getState().select({ kind: "arc", name: found.stream });
  useUi.getState().openBottom("tuples");
  return `${sent.accepted} rows have been sent to ${found.stream}${sent.dead ? `; ${sent.dead} did not fit` : ""}.`;
}

function CsvDrop() {
  const reason = useEditReason();
  const [over, setOver] = useState(false);
  const [busy, setBusy] = useState(false);
  const take = async (csv: string, name: string) => {
    if (!csv.trim() || busy) return;
    setBusy(true);
    try {
      await takeCsv(csv, name);
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      // The stream may be in the draft already, and this panel gone.
      useUi.getState().tell(`${error.problem.code}: ${error.problem.detail}`);
    } finally {
      setBusy(false);
    }
  };
  const takeFile = (file: File | undefined) => void file?.text().then((text) => take(text, file.name.replace(/\.[^.]*$/, "")));
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    const [file] = event.dataTransfer.files;
    if (file) takeFile(file);
    else void take(event.dataTransfer.getData("text/plain"), "rows");
  };
  const paste = (event: ClipboardEvent) => {
    event.preventDefault();
    void take(event.clipboardData.getData("text/plain"), "rows");
  };
  return (
    <div
      className={`csv-drop ${over ? "over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <label className="csv-label" htmlFor="csv-text">
        Paste or drop a CSV
      </label>
      <p className="muted">Its schema is inferred, a stream with its progress is declared, and the rows flow.</p>
      <textarea id="csv-text" className="mono" rows={2} readOnly={reason !== null} title={reason ?? undefined} placeholder={"machine,at,celsius\npress,2026-01-01T00:00:00Z,71.5"} value="" onChange={() => undefined} onPaste={paste} data-testid="csv-paste" />
      <label className="button csv-file">
        Choose a file
        <input type="file" accept=".csv,text/csv" className="hidden-text" disabled={reason !== null} onChange={(event) => takeFile(event.target.files?.[0])} data-testid="csv-file" />
      </label>
      <span role="status" className="muted">
        {busy ? "Working …" : ""}
      </span>
    </div>
  );
}

/** On an empty canvas: ways to begin. */
export function Welcome() {
  const setSearchOpen = useUi((state) => state.setSearchOpen);
  return (
    <div className="welcome" data-testid="welcome">
      <h2>Begin a network</h2>
      <Starters />
      <CsvDrop />
      <p className="muted welcome-keys">
        Or drag a stream from the palette, or press <kbd>/</kbd>{" "}
        <Button look="quiet" onClick={() => setSearchOpen(true)}>
          Add something
        </Button>
      </p>
    </div>
  );
}
