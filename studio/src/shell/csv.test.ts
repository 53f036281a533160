import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { api } from "../api/client";
import type { NetworkDocument, ServerInfo } from "../api/types";
import { put } from "../draft/edits";
import { loadDraft, useDraft } from "../store/draft";
import { useSession } from "../store/session";
import { useUi } from "../store/ui";
import { addCsvStream, declarationOf, fittingStreams, proposalOf, sendCsv } from "./csv";

const found = { stream: "rows", declaration: { schema: { id: "int", at: "timestamp" }, progress: { on: "at", delay: "10 seconds" } }, rows: 2 };

beforeEach(async () => {
  localStorage.clear();
  useSession.setState({ server: { role: "editor" } as ServerInfo, phase: "ready" });
  let running: NetworkDocument = { network: "plant", streams: { s: { schema: "at int, id int" } } };
  vi.spyOn(api, "network").mockImplementation(() => Promise.resolve({ network: running, version: "1" }));
  vi.spyOn(api, "layout").mockResolvedValue({ positions: {}, open: {}, bookmarks: [] });
  vi.spyOn(api, "check").mockResolvedValue({ ok: true, problems: [], cautions: [], arcs: {}, queries: {} });
  vi.spyOn(api, "deploy").mockImplementation((network) => {
    running = network;
    return Promise.resolve("1");
  });
  vi.spyOn(api, "enqueueCsv").mockResolvedValue({ accepted: 1, dead: 1 });
  await loadDraft({ discard: true });
});

afterEach(() => vi.restoreAllMocks());

it("proposes a stream that can be edited", () => {
  const proposal = proposalOf(found);
  expect(declarationOf(proposal)).toEqual(found.declaration);
  expect(declarationOf({ ...proposal, progress: { on: "id", delay: "5" } }).progress).toEqual({ on: "id", delay: 5 });
  expect(declarationOf({ ...proposal, progress: null })).toEqual({ schema: found.declaration.schema });
});

it("finds streams with the same fields", () => {
  expect(fittingStreams(useDraft.getState().draft, found.declaration.schema)).toEqual(["s"]);
  expect(fittingStreams(useDraft.getState().draft, { id: "int" })).toEqual([]);
});

it("runs the stream, sends the rows, and tells those that did not fit", async () => {
  await addCsvStream(proposalOf(found), "id,at\n");
  expect(useDraft.getState().deployed.streams?.rows).toEqual(found.declaration);
  expect(useUi.getState()).toMatchObject({ selected: { kind: "stream", name: "rows" }, bottomTab: "tuples", messageTone: "bad" });
  expect(useUi.getState().message).toBe("1 row sent to rows; 1 row did not fit and went to the dead letters.");
  await sendCsv("s", "id,at\n");
  expect(api.enqueueCsv).toHaveBeenLastCalledWith("s", "id,at\n");
});

it("does not run other changes of the draft", async () => {
  useDraft.getState().edit((document) => put(document, { section: "outputs", name: "o" }, { from: "s" }));
  await addCsvStream(proposalOf(found), "id,at\n");
  expect(api.deploy).not.toHaveBeenCalled();
  expect(useDraft.getState().draft.streams?.rows).toBeTruthy();
  expect(useUi.getState().message).toMatch(/in your draft/);
});
