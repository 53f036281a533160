import { useState } from "react";

import { api } from "../api/client";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { useForbidden } from "../store/role";
import { ProblemNote } from "../watch/ProblemNote";
import { useAsk } from "../watch/useAsk";
import { readRows } from "./readRows";

type Props = { stream: string; start: string; onClose: () => void };

/** A hand-made tuple for a stream, as JSON. */
export function SendTuple({ stream, start, onClose }: Props) {
  const [text, setText] = useState(start);
  const [said, setSaid] = useState("");
  const asking = useAsk();
  const forbidden = useForbidden("operator");
  const { rows, problem } = readRows(text);
  const send = () =>
    asking.run(async () => {
      setSaid("");
      const answer = await api.enqueue(stream, rows);
      setSaid(
        answer.dead
          ? `${answer.accepted} accepted, ${answer.dead} did not fit the schema and went to the dead letters.`
          : `${answer.accepted} accepted and durable.`,
      );
    });
  return (
    <Dialog title={`Send to ${stream}`} onClose={onClose}>
      <Field label="Tuple as JSON (an object, or a list of objects)" problem={problem}>
        {(id, describedBy) => (
          <textarea
            id={id}
            aria-describedby={describedBy}
            className="mono tuple-editor"
            rows={10}
            value={text}
            spellCheck={false}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
      <ProblemNote problem={asking.problem} />
      <p role="status" className="quiet">
        {said}
      </p>
      <footer className="dialog-actions">
        <Button onClick={onClose}>Close</Button>
        <Button
          look="primary"
          reason={forbidden ?? (problem ? "The JSON has a mistake." : null)}
          disabled={asking.busy}
          onClick={() => void send()}
        >
          Send
        </Button>
      </footer>
    </Dialog>
  );
}
