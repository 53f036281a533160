/** Rows from a CSV: a stream that fits them, or one that is there already. */

import { api } from "../api/client";
import type { Declaration, Json, NetworkDocument } from "../api/types";
import { asObject, entries, freeName, isEmpty } from "../draft/document";
import { put } from "../draft/edits";
import { isDirty } from "../draft/diff";
import { deployDraft, useDraft } from "../store/draft";
import { useUi } from "../store/ui";
import { plural } from "../watch/format";

export type Proposal = { stream: string; schema: Record<string, string>; progress: { on: string; delay: string } | null; rows: number };

const text = (value: Json | undefined): string => (typeof value === "string" || typeof value === "number" ? String(value) : "");

/** What the server infers of a CSV, as the dialog edits it. */
export function proposalOf(found: { stream: string; declaration: Declaration; rows: number }): Proposal {
  const { schema, progress } = found.declaration;
  const declared = progress && typeof progress === "object" && !Array.isArray(progress) ? progress : null;
  const fields = schema && typeof schema === "object" && !Array.isArray(schema) ? schema : {};
  return {
    stream: found.stream,
    schema: Object.fromEntries(Object.entries(fields).map(([name, type]) => [name, text(type)])),
    progress: declared ? { on: text(declared.on), delay: text(declared.delay) } : null,
    rows: found.rows,
  };
}

export function declarationOf({ schema, progress }: Proposal): Declaration {
  if (!progress) return { schema };
  const delay = progress.delay.trim();
  return { schema, progress: { on: progress.on, ...(delay === "" ? {} : { delay: Number.isFinite(Number(delay)) ? Number(delay) : delay }) } };
}

/** Streams with the same fields, of whatever type: a row that does not fit is told. */
export function fittingStreams(network: NetworkDocument, schema: Record<string, string>): string[] {
  const fields = Object.keys(schema).sort().join();
  return entries(network, "streams").flatMap(([name, declared]) => {
    const own = asObject("streams", declared).schema;
    const names = typeof own === "string" ? own.split(",").map((part) => part.trim().split(/\s+/)[0] ?? "") : Object.keys((own ?? {}) as object);
    return names.sort().join() === fields ? [name] : [];
  });
}

/** Send rows to a stream that runs, and show it with what became of them. */
export async function sendCsv(stream: string, csv: string): Promise<void> {
  const { accepted, dead } = await api.enqueueCsv(stream, csv);
  const { select, openBottom, tell } = useUi.getState();
  select({ kind: "stream", name: stream });
  openBottom("tuples");
  const left = dead ? `; ${plural(dead, "row")} did not fit and went to the dead letters` : "";
  tell(`${plural(accepted, "row")} sent to ${stream}${left}.`, dead ? "bad" : "ok");
}

/** Declare the stream; run it and send the rows, unless the draft has other changes that are not to run yet. */
export async function addCsvStream(proposal: Proposal, csv: string): Promise<void> {
  const { draft, diff, edit } = useDraft.getState();
  const alone = !isDirty(diff);
  edit((document) => {
    const made = put(document, { section: "streams", name: proposal.stream }, declarationOf(proposal));
    // A network needs a result.
    return isEmpty(draft) ? put(made, { section: "outputs", name: freeName(draft, "outputs", "rows") }, { from: proposal.stream }) : made;
  });
  if (!alone) {
    useUi.getState().select({ kind: "stream", name: proposal.stream });
    return useUi.getState().tell(`${proposal.stream} is in your draft. Deploy it, then drop the file again to send its rows.`, "ok");
  }
  await deployDraft();
  await sendCsv(proposal.stream, csv);
}
