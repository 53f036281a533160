import { describe, expect, it } from "vitest";

import type { Frame, LogEntry, StoryEntry } from "../api/types";
import { picture } from "../testing/picture";
import { applyFrame, emptyLive, type LiveState, sampleKey } from "./frames";

const after = (state: LiveState, ...frames: Frame[]) => {
  let asked = 0;
  for (const frame of frames) {
    const { change, resync } = applyFrame(state, frame);
    state = { ...state, ...change };
    if (resync) asked += 1;
  }
  return { state, asked };
};
const whole = (seq: number): Frame => ({ type: "picture", seq, whole: true, picture: picture() });
const patch = (seq: number, rate: number): Frame => ({ type: "picture", seq, whole: false, patch: { rate } });

describe("picture frames", () => {
  it("applies patches that follow each other", () => {
    const { state, asked } = after(emptyLive, whole(7), patch(8, 1), patch(9, 2));
    expect(state.picture?.rate).toBe(2);
    expect(asked).toBe(0);
  });

  it("takes patches with gaps between their numbers: the server skips pictures for slow clients", () => {
    expect(after(emptyLive, whole(1), patch(5, 10)).state.picture?.rate).toBe(10);
  });

  it("asks for a whole picture when a patch does not follow, and ignores patches until it comes", () => {
    const { state, asked } = after(emptyLive, whole(4), patch(5, 10), patch(5, 20), patch(6, 30));
    expect(state.picture?.rate).toBe(10);
    expect(asked).toBe(2);
    expect(after(state, whole(7), patch(8, 40)).state.picture?.rate).toBe(40);
  });

  it("does not take a patch before the first whole picture", () => {
    const { state, asked } = after(emptyLive, patch(3, 1));
    expect([state.picture, asked]).toEqual([null, 1]);
  });
});

describe("other frames", () => {
  it("keeps the latest sample of an arc with its problem", () => {
    const problem = { type: "", title: "", status: 400, detail: "no field x", code: "UNKNOWN_FIELD" };
    const table = { fields: [], rows: [] };
    const { state } = after(emptyLive, { type: "sample", arc: "hot", limit: 5, where: null, table, error: problem });
    expect(state.samples[sampleKey({ arc: "hot", limit: 5, where: null })]).toEqual({ table, problem });
  });

  it("bounds the log and counts what it drops", () => {
    const entries: LogEntry[] = Array.from({ length: 1500 }, (_, at) => ({ at_us: at, level: "info", text: "x" }));
    const more = entries.map((entry) => ({ ...entry, at_us: entry.at_us + 1500 }));
    const { state } = after(emptyLive, { type: "log", entries }, { type: "log", entries: more });
    expect(state.log).toHaveLength(2000);
    expect(state.logDropped).toBe(1000);
    expect(after(state, { type: "log", entries: more }).state.log).toEqual(state.log);
  });

  it("replaces a story by its newest form", () => {
    const entry: StoryEntry = { at_us: 1, about: ["hot"], event: "ran", why: "round robin", count: 1 };
    const { state } = after(
      emptyLive,
      { type: "story", name: "hot", entries: [entry] },
      { type: "story", name: "hot", entries: [{ ...entry, count: 2 }] },
    );
    expect(state.stories.hot).toEqual([{ ...entry, count: 2 }]);
  });
});
