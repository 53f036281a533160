import { describe, expect, it } from "vitest";

import type { MoveFigures } from "../api/types";
import { ghostsAt, movedAway } from "./moves";

const move = (change: Partial<MoveFigures>): MoveFigures => ({ box: "hot", past: "wide", place: "hot", target: "wide", tactic: "passed", side: "", text: "passed past wide", ...change });

describe("what the optimiser moved", () => {
  it("runs in front of the box that it passed last", () => {
    const twice = [move({}), move({ past: "first", place: "wide", target: "first", text: "passed past first" })];
    expect(ghostsAt(twice, "wide", 0)).toEqual([]);
    expect(ghostsAt(twice, "first", 0)).toEqual([{ box: "hot", text: "passed past first", sifts: false }]);
    expect(ghostsAt(twice, "first", 1)).toEqual([]);
    expect(movedAway(twice, "hot")).toBe("passed past first");
    expect(movedAway(twice, "wide")).toBeNull();
  });

  it("stays where it is if a join drops for it, at one side", () => {
    const sifted = [move({ tactic: "sifted", target: "pairs", side: "right" })];
    expect(movedAway(sifted, "hot")).toBeNull();
    expect(ghostsAt(sifted, "pairs", 0)).toEqual([]);
    expect(ghostsAt(sifted, "pairs", 1).map((ghost) => ghost.sifts)).toEqual([true]);
  });
});
