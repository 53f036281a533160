import { beforeEach, describe, expect, it, vi } from "vitest";

import { api, ProblemError } from "../api/client";
import type { NetworkDocument, ServerInfo } from "../api/types";
import { put, setKey } from "../draft/edits";
import { adoptDeployed, checkNow, deployDraft, followDeployed, loadDraft, useDraft } from "./draft";
import { useSession } from "./session";

const plant: NetworkDocument = { network: "plant", streams: { s: { schema: "a int" } }, outputs: { o: { from: "s" } } };
const ref = { section: "outputs" as const, name: "o" };
const server = { role: "editor" } as ServerInfo;

/** A server that has `network` in `version`. */
function serve(network: NetworkDocument, version: string): void {
  vi.spyOn(api, "network").mockResolvedValue({ network, version });
  vi.spyOn(api, "layout").mockResolvedValue({ positions: { s: [1, 2] }, open: {}, bookmarks: [] });
  vi.spyOn(api, "check").mockResolvedValue({ ok: true, problems: [], cautions: [], arcs: {}, queries: {} });
}

beforeEach(async () => {
  vi.useFakeTimers();
  localStorage.clear();
  useSession.setState({ server, phase: "ready" });
  serve(plant, "1");
  useDraft.setState({ loaded: false });
  await loadDraft({ discard: true });
});

describe("history", () => {
  it("undoes and redoes without end, and forgets the future after an edit", () => {
    const { edit, undo, redo } = useDraft.getState();
    for (let n = 0; n < 50; n += 1) edit((document) => put(document, { section: "outputs", name: `o${n}` }, { from: "s" }));
    for (let n = 0; n < 50; n += 1) undo();
    expect(useDraft.getState().draft).toEqual(plant);
    redo();
    expect(Object.keys(useDraft.getState().draft.outputs ?? {})).toEqual(["o", "o0"]);
    edit((document) => setKey(document, ref, ["description"], "x"));
    expect(useDraft.getState().future).toEqual([]);
  });

  it("counts the letters of a text as one edit", () => {
    const { edit, undo } = useDraft.getState();
    for (const text of ["a", "ab", "abc"]) edit((document) => setKey(document, ref, ["description"], text), { merge: "o description" });
    expect(useDraft.getState().past.length).toBe(1);
    undo();
    expect(useDraft.getState().draft.outputs?.o).toEqual({ from: "s" });
  });

  it("brings positions back, too", () => {
    const { setLayout, undo } = useDraft.getState();
    setLayout({ positions: { s: [9, 9] } }, { history: true });
    undo();
    expect(useDraft.getState().layout.positions.s).toEqual([1, 2]);
  });

  it("takes back an edit and a move one by one", () => {
    const { edit, setLayout, undo } = useDraft.getState();
    edit((document) => setKey(document, ref, ["description"], "a"), { merge: "o description" });
    setLayout({ positions: { s: [9, 9] } }, { history: true });
    edit((document) => setKey(document, ref, ["description"], "ab"), { merge: "o description" });
    undo();
    expect(useDraft.getState().draft.outputs?.o).toEqual({ from: "s", description: "a" });
    expect(useDraft.getState().layout.positions.s).toEqual([9, 9]);
  });

  it("does nothing for a viewer", () => {
    useSession.setState({ server: { role: "viewer" } as ServerInfo });
    useDraft.getState().edit((document) => setKey(document, ref, ["description"], "x"));
    expect(useDraft.getState().draft).toEqual(plant);
  });
});

describe("check", () => {
  it("asks once for edits in quick succession, about the newest draft", async () => {
    const check = vi.spyOn(api, "check");
    check.mockClear();
    const { edit } = useDraft.getState();
    for (const text of ["a", "ab"]) edit((document) => setKey(document, ref, ["description"], text));
    await vi.advanceTimersByTimeAsync(149);
    expect(check).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(2);
    expect(check).toHaveBeenCalledTimes(1);
    expect(check.mock.calls[0]?.[0].outputs?.o).toEqual({ from: "s", description: "ab" });
  });
});

describe("a failing check", () => {
  it("is told until one goes well, and does not speak for an earlier draft", async () => {
    const busy = new ProblemError({ type: "", title: "", status: 503, code: "BUSY", detail: "the server is busy" });
    vi.spyOn(api, "check").mockRejectedValueOnce(busy);
    useDraft.getState().edit((document) => setKey(document, ref, ["description"], "x"));
    await vi.advanceTimersByTimeAsync(200);
    expect(useDraft.getState().unchecked?.code).toBe("BUSY");
    await checkNow();
    expect(useDraft.getState().unchecked).toBeNull();
  });
});

describe("a discarded draft", () => {
  it("comes back by undo, against what runs then", async () => {
    useDraft.getState().edit((document) => setKey(document, ref, ["description"], "mine"));
    serve({ ...plant, outputs: { o: { from: "s" }, p: { from: "s" } } }, "2");
    await loadDraft({ discard: true });
    expect(useDraft.getState().diff.changed).toEqual([]);
    useDraft.getState().undo();
    expect(useDraft.getState()).toMatchObject({ version: "2", draft: { outputs: { o: { description: "mine" } } } });
    expect(useDraft.getState().diff.removed).toEqual([{ section: "outputs", name: "p" }]);
  });
});

describe("a refused deployment", () => {
  it("is told until the next edit", () => {
    useDraft.setState({ refusal: { type: "", title: "", status: 409, code: "CANNOT_CHANGE", detail: "no" } });
    useDraft.getState().edit((document) => setKey(document, ref, ["description"], "x"));
    expect(useDraft.getState().refusal).toBeNull();
  });
});

describe("what runs", () => {
  it("keeps an undeployed draft over a reload", async () => {
    useDraft.getState().edit((document) => setKey(document, ref, ["description"], "mine"));
    await vi.advanceTimersByTimeAsync(400);
    await loadDraft();
    expect(useDraft.getState().draft.outputs?.o).toEqual({ from: "s", description: "mine" });
    expect(useDraft.getState().outdated).toBe(false);
  });

  it("says so if others have deployed meanwhile, and keeps the version for the conflict", async () => {
    useDraft.getState().edit((document) => setKey(document, ref, ["description"], "mine"));
    serve({ ...plant, outputs: { o: { from: "s" }, p: { from: "s" } } }, "2");
    await followDeployed("2");
    expect(useDraft.getState()).toMatchObject({ outdated: true, version: "1" });
    expect(useDraft.getState().diff.removed).toEqual([{ section: "outputs", name: "p" }]);
  });

  it("follows others if there is no draft", async () => {
    const theirs = { ...plant, outputs: { p: { from: "s" } } };
    serve(theirs, "2");
    await followDeployed("2");
    expect(useDraft.getState()).toMatchObject({ outdated: false, version: "2", draft: theirs });
  });

  it("is no draft any more once others have deployed the same", async () => {
    useDraft.getState().edit((document) => setKey(document, ref, ["description"], "ours"));
    serve(structuredClone(useDraft.getState().draft), "2");
    await followDeployed("2");
    expect(useDraft.getState()).toMatchObject({ outdated: false, version: "2" });
  });

  it("is clean after a deployment, also if the server writes the network in another form", async () => {
    useDraft.getState().edit((document) => put(document, { section: "queries", name: "q" }, { sql: "SELECT a FROM s", results: "keep" }));
    const sent = useDraft.getState().draft;
    serve({ ...sent, queries: { q: "SELECT a FROM s" } }, "2");
    await adoptDeployed(sent, "2");
    expect(useDraft.getState().diff).toEqual({ added: [], changed: [], removed: [], engine: false, name: false });
  });

  it("is known after a deployment although it cannot be read at once, so that the next one is no conflict", async () => {
    useDraft.getState().edit((document) => setKey(document, ref, ["description"], "ours"));
    vi.spyOn(api, "deploy").mockResolvedValue("2");
    vi.spyOn(api, "network").mockRejectedValueOnce(new ProblemError({ type: "", title: "", status: 503, detail: "", code: "BUSY" }));
    await deployDraft();
    expect(useDraft.getState()).toMatchObject({ version: "2", outdated: false, diff: { changed: [] } });
  });

  it("shows why the network could not be loaded", async () => {
    vi.spyOn(api, "network").mockRejectedValue(new ProblemError({ type: "", title: "", status: 503, detail: "not ready", code: "NOT_READY" }));
    await loadDraft();
    expect(useDraft.getState().problem?.code).toBe("NOT_READY");
  });
});
