import { beforeEach, describe, expect, it, vi } from "vitest";

import { api, ProblemError } from "../api/client";
import type { DebugState, TraceEntry } from "../api/types";
import { applyFrame } from "../store/frames";
import { liveStore } from "../store/live";
import { useUi } from "../store/ui";
import { outputFigures, picture } from "../testing/picture";
import { pause, resume, stepAndWalk, stepTuple, useDebug, walk } from "./actions";
import { toggleBreakpoint } from "./breakpoints";
import { isAllPaused, isPaused } from "./paused";
import { readRows } from "./readRows";
import { boxLabel } from "./boxLabel";
import { latestTuple, starterTuple } from "./starterTuple";

const state = (change: Partial<DebugState>): DebugState => ({ paused: false, applications: [], hit: null, breakpoints: [], trace: [], ...change });
const entry = (box: string): TraceEntry => ({ box, superbox: box, in: {}, out: {}, held: null, kept: {}, late: {}, seconds: 0 });

beforeEach(() => {
  vi.restoreAllMocks();
  liveStore.setState({ picture: picture(), sent: null });
  useDebug.setState({ application: null, trace: [], cursor: 0, busy: false });
});

describe("pausing and stepping", () => {
  it("tells whether the chosen application stands still", () => {
    const outputs = { alerts: outputFigures(), rest: outputFigures() };
    const paused = (...applications: string[]) => picture({ outputs, debug: state({ paused: true, applications }) });
    expect(isPaused(paused("alerts", "rest"), "alerts")).toBe(true);
    expect(isPaused(paused("alerts"), "alerts")).toBe(true);
    expect(isPaused(paused("alerts"), "rest")).toBe(false);
    expect(isPaused(paused("alerts"), null)).toBe(false);
    expect([isAllPaused(paused()), isAllPaused(paused("alerts", "rest")), isAllPaused(paused("rest"))]).toEqual([true, true, false]);
    expect(isPaused(picture(), null)).toBe(false);
    expect(isPaused(null, null)).toBe(false);
  });

  it("shows the pause without waiting for the next picture", async () => {
    vi.spyOn(api, "pause").mockResolvedValue(state({ paused: true }));
    await pause();
    expect(liveStore.getState().picture?.state).toBe("paused");
  });

  it("lets the next picture correct an answer that comes after a breakpoint was hit", async () => {
    liveStore.setState({ picture: picture({ state: "paused", debug: state({ paused: true }) }), seq: 1 });
    vi.spyOn(api, "resume").mockResolvedValue(state({ paused: false }));
    await resume();
    expect(liveStore.getState().picture?.state).toBe("running");
    const { change } = applyFrame(liveStore.getState(), { type: "picture", seq: 2, whole: false, patch: { rate: 7 } });
    expect(change.picture).toMatchObject({ rate: 7, state: "paused", debug: { paused: true } });
  });

  it("opens the trace and walks along its boxes", async () => {
    vi.spyOn(api, "step").mockResolvedValue({ trace: [entry("watch"), entry("hot")], state: state({ paused: true }) });
    await stepTuple();
    expect(useUi.getState()).toMatchObject({ bottomTab: "debug", selected: { kind: "box", name: "watch" } });
    walk(1);
    expect(useUi.getState().selected?.name).toBe("hot");
    walk(5);
    expect(useDebug.getState().cursor).toBe(1);
  });

  it("selects the instance of a superbox for the boxes in it", async () => {
    vi.spyOn(api, "step").mockResolvedValue({ trace: [entry("border/across")], state: state({ paused: true }) });
    await stepTuple();
    expect(useUi.getState().selected).toEqual({ kind: "box", name: "border" });
  });

  it("goes on running while one application is paused", async () => {
    vi.spyOn(api, "pause").mockResolvedValue(state({ applications: ["alerts"] }));
    await pause();
    expect(liveStore.getState().picture?.state).toBe("running");
  });

  it("tells a failure above the canvas until an action goes well", async () => {
    const refused = new ProblemError({ type: "", title: "", status: 409, code: "NOT_PAUSED", detail: "the engine runs", hint: "pause first" });
    vi.spyOn(api, "step").mockRejectedValue(refused);
    await stepTuple();
    expect(useUi.getState().message).toBe("NOT_PAUSED: the engine runs; pause first");
    vi.spyOn(api, "pause").mockResolvedValue(state({ paused: true }));
    await pause();
    expect(useUi.getState().message).toBeNull();
  });

  it("does not select boxes that are not on the canvas", async () => {
    useUi.getState().select({ kind: "box", name: "hot" });
    vi.spyOn(api, "step").mockResolvedValue({ trace: [entry("eddy@readings")], state: state({ paused: true }) });
    await stepTuple();
    expect(useUi.getState().selected?.name).toBe("hot");
    expect(boxLabel("eddy@readings")).toBe("queries over readings");
  });
});

describe("the trace", () => {
  it("takes the focus after a step by the keyboard, not after one that failed", async () => {
    vi.spyOn(api, "step").mockResolvedValueOnce({ trace: [entry("watch")], state: state({ paused: true }) });
    await stepAndWalk("tuple");
    expect(useDebug.getState().focusTrace).toBe(true);
    useDebug.setState({ focusTrace: false });
    vi.spyOn(api, "step").mockRejectedValueOnce(new ProblemError({ type: "", title: "", status: 409, detail: "", code: "NOT_PAUSED" }));
    await stepAndWalk("tuple");
    expect(useDebug.getState().focusTrace).toBe(false);
  });

  it("is that of the first picture after a reload", () => {
    liveStore.setState({ picture: null });
    liveStore.setState({ picture: picture({ debug: state({ paused: true, trace: [entry("watch")] }) }) });
    expect(useDebug.getState().trace.map((each) => each.box)).toEqual(["watch"]);
  });
});

describe("breakpoints", () => {
  it("sets one where there is none, and removes all of an arc", async () => {
    const set = vi.spyOn(api, "setBreakpoint").mockResolvedValue({ id: "b1" });
    const remove = vi.spyOn(api, "removeBreakpoint").mockResolvedValue(null);
    await toggleBreakpoint("hot");
    expect(set).toHaveBeenCalledWith("hot", null);
    const known = { id: "b1", arc: "hot", condition: null, enabled: true, hits: 0 };
    liveStore.setState({ picture: picture({ debug: state({ breakpoints: [known] }) }) });
    await toggleBreakpoint("hot");
    expect(remove).toHaveBeenCalledWith("b1");
  });
});

describe("hand-made tuples", () => {
  it("begin with values that fit the schema", () => {
    const network = { network: "n", streams: { s: { schema: { a: "int", t: "timestamp", x: "string" } }, u: { schema: "sid int, ok boolean" } } };
    const now = new Date("2026-01-01T00:00:00Z");
    expect(JSON.parse(starterTuple(network, "s", now))).toEqual({ a: 0, t: "2026-01-01T00:00:00.000Z", x: "" });
    expect(JSON.parse(starterTuple(network, "u", now))).toEqual({ sid: 0, ok: false });
  });

  it("begin with the latest tuple if there is one", async () => {
    const fields = ["_seq", "a"].map((name) => ({ name, type: "int" }));
    vi.spyOn(api, "sample").mockResolvedValue({ fields, rows: [[7, 5]] });
    expect(JSON.parse(await latestTuple(null, "s"))).toEqual({ a: 5 });
    vi.spyOn(api, "sample").mockResolvedValue({ fields, rows: [] });
    expect(JSON.parse(await latestTuple(null, "s"))).toEqual({});
  });

  it("are objects or lists of objects", () => {
    expect(readRows('{"a": 1}').rows).toEqual([{ a: 1 }]);
    expect(readRows('[{"a": 1}, {"a": 2}]').rows).toHaveLength(2);
    expect(readRows("[1]").problem).toMatch(/object/);
    expect(readRows("{").problem).toBeTruthy();
  });
});
