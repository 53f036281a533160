import { ProblemError } from "../api/client";
import type { Starter } from "../api/types";
import { Button } from "../components/Button";
import { saying } from "../draft/saying";
import { deployDraft, useDraft } from "../store/draft";
import { useEditReason, useSession } from "../store/session";
import { useUi } from "../store/ui";
import { offerFile } from "./FileDrop";

/** Make a starter the network and run it; the network that runs keeps its name: its state and its layout go by it. */
async function takeStarter(starter: Starter): Promise<void> {
  const { ask, tell, select, openBottom } = useUi.getState();
  useDraft.getState().edit((document) => ({ ...starter.network, network: document.network }));
  ask({ kind: "fit" });
  try {
    await deployDraft();
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return tell(saying(error.problem)); // it stays a draft
  }
  const [stream] = Object.keys(starter.network.streams ?? {});
  if (stream) select({ kind: "stream", name: stream });
  openBottom("tuples");
}

function Starters() {
  const starters = useSession((state) => state.starters);
  const reason = useEditReason();
  return (
    <ul className="starters">
      {starters.slice(0, 3).map((starter) => (
        <li key={starter.name}>
          <button type="button" className="starter" disabled={reason !== null} title={reason ?? undefined} onClick={() => void takeStarter(starter)} data-testid={`starter-${starter.name}`}>
            <strong>{starter.title}</strong>
            <span className="muted">{starter.description}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function CsvPaste() {
  const paste = (text: string) => {
    if (text.trim()) useUi.getState().offerCsv({ text, name: "rows" });
  };
  return (
    <div className="csv-drop">
      <label className="csv-label" htmlFor="csv-text">
        Paste or drop a CSV
      </label>
      <p className="muted">Its schema is inferred, a stream with its progress is proposed, and the rows flow.</p>
      <textarea
        id="csv-text"
        className="mono"
        rows={2}
        placeholder={"machine,at,celsius\npress,2026-01-01T00:00:00Z,71.5"}
        value=""
        onChange={() => undefined}
        onPaste={(event) => {
          event.preventDefault();
          paste(event.clipboardData.getData("text/plain"));
        }}
        data-testid="csv-paste"
      />
      <label className="button csv-file">
        Choose a file
        <input
          type="file"
          accept=".csv,text/csv"
          className="hidden-text"
          onChange={(event) => {
            const [file] = event.target.files ?? [];
            if (file) void offerFile(file);
            event.target.value = "";
          }}
          data-testid="csv-file"
        />
      </label>
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
      <CsvPaste />
      <p className="muted welcome-keys">
        Or drag a stream from the palette, or press <kbd>/</kbd>{" "}
        <Button look="quiet" onClick={() => setSearchOpen(true)}>
          Add something
        </Button>
      </p>
    </div>
  );
}
