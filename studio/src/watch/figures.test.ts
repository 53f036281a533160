import { describe, expect, it } from "vitest";

import { arcFigures, boxFigures, outputFigures, picture } from "../testing/picture";
import { arcFacts, arcLabel, arcTitle, arcTone, arcWidth, boxTexts, instanceFigures, outputTone } from "./figures";
import { meanCourse } from "./courses";

describe("boxes", () => {
  it("does not say that work takes no time", () => {
    expect(boxTexts(boxFigures({ cost_s: 0 })).cost).toBe("–");
    expect(boxTexts(boxFigures({ cost_s: 0 })).title).not.toContain("of work");
    expect(boxTexts(boxFigures({ cost_s: 0.0143 })).cost).toBe("14.3 ms");
  });
});

/** An arc on which the oldest tuple for `hot` has waited, of what outputs behind it can bear. */
const waiting = (oldest_s: number, patience_s: number) => arcFigures({ queued: 5, oldest_s, pressed: { hot: { oldest_s, patience_s } } });

it("sums up what is inside of an instance of a superbox", () => {
  const boxes = { "crowd/over": boxFigures({ late: { closed: 2 }, held: 3 }), "crowd/few": boxFigures({ dead: 1, halted: "no disk" }), crowds: boxFigures({ dead: 9 }) };
  const arcs = { reports: arcFigures({ rate: 50 }), crowd: arcFigures({ rate: 4 }) };
  const found = instanceFigures(picture({ boxes, arcs }), "crowd", ["reports"], ["crowd"]);
  expect(found).toMatchObject({ in_rate: 50, out_rate: 4, held: 3, late: { inside: 2 }, dead: 1, halted: "no disk" });
  expect(instanceFigures(picture({ boxes }), "other", [], [])).toBeNull();
});

describe("arcs", () => {
  it.each([
    [arcFigures(), "calm"],
    [arcFigures({ rate: 0 }), "idle"],
    [arcFigures({ queued: 5, oldest_s: 9 }), "calm"],
    [waiting(1, 2), "amber"],
    [waiting(1.9, 2), "amber"],
    [waiting(2, 2), "red"],
    [waiting(0.1, 0), "red"],
    [{ ...waiting(99, 2), queued: 0 }, "calm"],
  ])("the tone of %j is %s", (arc, tone) => expect(arcTone(arc)).toBe(tone));

  it("presses for the readers that outputs wait for, and is calm for the others", () => {
    const arc = arcFigures({ queued: 9000, oldest_s: 4, pressed: { fast: { oldest_s: 0.6, patience_s: 1 }, "crowd/over": { oldest_s: 4, patience_s: 3 } } });
    expect([["fast"], ["crowd"], ["slow"], ["slow", "fast"], undefined].map((readers) => arcTone(arc, readers))).toEqual(["amber", "red", "calm", "amber", "red"]);
    expect(arcLabel(arc).age).toBe("4.0 s");
    expect(arcFacts(arc).age).toBe("4.0 s of 3.0 s: the oldest tuple for crowd/over waits longer than outputs can bear");
    expect(arcFacts(arcFigures({ queued: 9000, oldest_s: 4 })).age).toBe("4.0 s");
  });

  it("is thicker by the logarithm of the rate, within bounds", () => {
    const widths = [0, 10, 1000, 100_000, 1e12].map(arcWidth);
    expect(widths).toEqual([...widths].sort((one, other) => one - other));
    expect([widths[0], widths[4]]).toEqual([1.5, 8]);
  });

  it("says how old the oldest tuple is when that presses, beside the colour", () => {
    expect(arcLabel({ ...waiting(3, 2), queued: 19_100 })).toEqual({ queue: "19.1 k", age: "3.0 s" });
    expect(arcLabel(waiting(1.2, 2))).toEqual({ queue: "5", age: "1.2 s" });
    expect(arcLabel(arcFigures({ queued: 12, oldest_s: 0.2 }))).toEqual({ queue: "12", age: "" });
    expect(arcLabel(arcFigures())).toEqual({ queue: "", age: "" });
  });

  it("says queue, age against patience and mark", () => {
    const title = arcTitle("readings", { ...waiting(2.5, 2), queued: 312, mark: { ts: 7 } });
    expect(title).toContain("312 tuples queued");
    expect(title).toContain("oldest 2.5 s of 2.0 s");
    expect(title).toContain("ts ≥ 7");
  });

  it("says the same as text, whatever the colour", () => {
    const facts = arcFacts({ ...waiting(2.5, 2), queued: 312, mark: { ts: 7 } });
    expect(facts).toMatchObject({ rate: "200/s, 1.0 k tuples in all", queue: "312 tuples", mark: "ts ≥ 7" });
    expect(facts.age).toBe("2.5 s of 2.0 s: the oldest tuple for hot waits longer than outputs can bear");
    expect(arcFacts(arcFigures())).toMatchObject({ queue: "empty", age: "", mark: "" });
  });
});

describe("boxes and outputs", () => {
  it("shows only what there is", () => {
    const texts = boxTexts(boxFigures({ late: { closed: 2, below: 1 }, shed: 5 }));
    expect(texts).toMatchObject({ in: "2.0 k/s", out: "20/s", passes: "1.0 %", cost: "3.2 µs", held: "", late: "3", dead: "", shed: "5" });
  });

  it("is red when it failed, whatever its utility", () => {
    expect(outputTone(outputFigures({ utility: 1, failed: "disk full" }))).toBe("red");
    expect(outputTone(outputFigures({ utility: 0.6 }))).toBe("amber");
    expect(outputTone(outputFigures({ utility: null }))).toBe("idle");
  });

  it("takes the mean of courses from their ends", () => {
    expect(meanCourse([[1, 0.5, null], [0.5]])).toEqual([1, 0.5, 0.5]);
    expect(meanCourse([])).toEqual([]);
  });
});
