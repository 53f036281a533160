import { useEffect, useId, useState } from "react";

import { api } from "../api/client";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { freeName, nameProblem } from "../draft/document";
import { useDraft } from "../store/draft";
import { useForbidden } from "../store/role";
import { useEditReason } from "../store/session";
import { useUi, type Csv } from "../store/ui";
import { plural } from "../watch/format";
import { ProblemNote } from "../watch/ProblemNote";
import { useAsk } from "../watch/useAsk";
import { addCsvStream, fittingStreams, proposalOf, sendCsv, type Proposal } from "./csv";

const TYPES = ["string", "int", "bigint", "double", "boolean", "timestamp", "date"];

/** What becomes of a CSV: a stream that fits it is proposed, or its rows go to one that is there. */
export function CsvDialog({ csv }: { csv: Csv }) {
  const close = () => useUi.getState().offerCsv(null);
  const { run, problem, busy } = useAsk();
  const [proposal, setProposal] = useState<Proposal | null>(null);
  const deployed = useDraft((state) => state.deployed);
  const draft = useDraft((state) => state.draft);
  const mayAdd = useEditReason();
  const maySend = useForbidden("operator");
  useEffect(() => {
    let wanted = true;
    void run(async () => {
      const found = await api.infer(csv.text, freeName(useDraft.getState().draft, "streams", csv.name));
      if (wanted) setProposal(proposalOf(found));
    });
    return () => {
      wanted = false;
    };
  }, [csv, run]);
  const fitting = proposal ? fittingStreams(deployed, proposal.schema) : [];
  const wrongName = proposal && nameProblem(draft, { section: "streams", name: "" }, proposal.stream);
  const finish = (work: () => Promise<void>) => () => void run(work).then((well) => well && close());
  return (
    <Dialog title={proposal ? `${plural(proposal.rows, "row")} of ${csv.name}` : csv.name} onClose={close}>
      <div className="dialog-body form" data-testid="csv-dialog">
        {!proposal && !problem && <p className="muted">Inferring the schema …</p>}
        {proposal && <ProposalForm proposal={proposal} wrongName={wrongName} onChange={setProposal} />}
        <ProblemNote problem={problem} />
      </div>
      <footer>
        <Button onClick={close}>Cancel</Button>
        {proposal && (
          <Button look={fitting.length ? "plain" : "primary"} reason={mayAdd ?? wrongName} disabled={busy} onClick={finish(() => addCsvStream(proposal, csv.text))} data-testid="csv-add">
            Add stream
          </Button>
        )}
        {fitting.map((stream) => (
          <Button key={stream} look="primary" reason={maySend} disabled={busy} onClick={finish(() => sendCsv(stream, csv.text))} data-testid={`csv-send-${stream}`}>
            Send to {stream}
          </Button>
        ))}
      </footer>
    </Dialog>
  );
}

type FormProps = { proposal: Proposal; wrongName: string | null; onChange: (proposal: Proposal) => void };

/** Name, types and progress of the proposed stream. */
function ProposalForm({ proposal, wrongName, onChange }: FormProps) {
  const types = useId();
  const { schema, progress } = proposal;
  return (
    <>
      <Field label="Name of the stream" problem={wrongName}>
        {(id, described) => <input id={id} type="text" autoFocus className="mono" aria-describedby={described} value={proposal.stream} onChange={(event) => onChange({ ...proposal, stream: event.target.value })} data-testid="csv-name" />}
      </Field>
      <fieldset className="form-object">
        <legend>Schema</legend>
        {Object.entries(schema).map(([name, type]) => (
          <div key={name} className="map-row two">
            <span className="mono">{name}</span>
            <input type="text" className="mono" aria-label={`type of ${name}`} list={types} value={type} onChange={(event) => onChange({ ...proposal, schema: { ...schema, [name]: event.target.value } })} data-testid={`csv-type-${name}`} />
          </div>
        ))}
        <datalist id={types}>
          {TYPES.map((type) => (
            <option key={type} value={type} />
          ))}
        </datalist>
      </fieldset>
      <Field label="Progresses by" hint="Windows and joins know by this field how far the stream has come.">
        {(id, described) => (
          <select id={id} className="mono" aria-describedby={described} value={progress?.on ?? ""} onChange={(event) => onChange({ ...proposal, progress: event.target.value ? { on: event.target.value, delay: progress?.delay ?? "" } : null })} data-testid="csv-progress">
            <option value="">nothing</option>
            {Object.keys(schema).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
      </Field>
      {progress && (
        <Field label="Rows may come late by">
          {(id) => <input id={id} type="text" className="mono" placeholder="0" value={progress.delay} onChange={(event) => onChange({ ...proposal, progress: { ...progress, delay: event.target.value } })} data-testid="csv-delay" />}
        </Field>
      )}
    </>
  );
}
