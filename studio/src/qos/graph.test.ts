import { describe, expect, it } from "vitest";

import { addPoint, goodUntil, graphOf, graphProblem, gridStep, movePoint, removePoint, utilityAt, withGraph, type Graph } from "./graph";
import { keyed } from "./keyed";
import { histogram, observedOf, predicted } from "./observed";
import { domainOf, screenX, shownTicks, ticks, valueX, WIDTH } from "./scale";

const latency: Graph = [
  [0, 1],
  [2, 1],
  [10, 0],
];

describe("moving points", () => {
  it("keeps a point between its neighbours and the utility falling", () => {
    expect(movePoint(latency, 1, [99, 2], "latency", 0.1)[1]).toEqual([9.9, 1]);
    expect(movePoint(latency, 1, [-5, -1], "latency", 0.1)[1]).toEqual([0.1, 0]);
    expect(movePoint(latency, 2, [12, 0.5], "latency", 0.1)[2]).toEqual([12, 0.5]);
    expect(movePoint(latency, 0, [-3, 0.2], "latency", 0.1)[0]).toEqual([0, 1]);
  });

  it("keeps a loss graph rising within [0, 1]", () => {
    const loss: Graph = [
      [0, 0],
      [0.5, 0.8],
      [1, 1],
    ];
    expect(movePoint(loss, 2, [3, 0.1], "loss", 0.01)[2]).toEqual([1, 0.8]);
    expect(movePoint(loss, 0, [-1, 0.9], "loss", 0.01)[0]).toEqual([0, 0.8]);
  });

  it("lets values go up and down", () => {
    expect(movePoint([[0, 0.5], [5, 0.2], [9, 1]], 1, [4, 1], "value", 0.1)[1]).toEqual([4, 1]);
  });

  it("adds and removes points", () => {
    const grown = addPoint(latency, [6, 0.9], "latency", 0.1);
    expect(grown).toEqual({ graph: [[0, 1], [2, 1], [6, 0.9], [10, 0]], at: 2 });
    expect(addPoint(latency, [2, 0.5], "latency", 0.1)).toBeNull();
    expect(addPoint([[0, 0], [1, 1]], [2, 1], "loss", 0.1)).toBeNull();
    expect(removePoint(latency, 1)).toEqual([[0, 1], [10, 0]]);
    expect(removePoint([[0, 1], [1, 0]], 0)).toHaveLength(2);
  });

  it("moves by keys", () => {
    const domain = domainOf(latency, "latency");
    expect(keyed("ArrowRight", false, latency, 1, "latency", domain)?.[1]?.[0]).toBeGreaterThan(2);
    expect(keyed("ArrowDown", true, latency, 1, "latency", domain)?.[1]).toEqual([2, 0.99]);
    expect(keyed("Delete", false, latency, 1, "latency", domain)).toHaveLength(2);
    expect(keyed("Insert", false, latency, 1, "latency", domain)).toContainEqual([6, 0.5]);
    expect(keyed("x", false, latency, 1, "latency", domain)).toBeNull();
  });
});

describe("what check says", () => {
  it.each<[Graph, "latency" | "loss" | "value", boolean, RegExp | null]>([
    [latency, "latency", true, null],
    [[[0, 1]], "latency", true, /two points/],
    [[[0, 0], [1, 1]], "latency", true, /falls/],
    [[[0, 1], [1, 0]], "loss", true, /rises/],
    [[[0, 1], [1, 0.2], [10, 0]], "latency", true, /steeper/],
    [[[0, 1], [1, 0.2], [10, 0]], "latency", false, null],
    [[[0, 1], [1, 0], [10, 0]], "latency", true, null],
    [[[0, 0], [0.5, 0.8], [1, 1]], "loss", true, null],
    [[[0, 0], [0.5, 0.2], [1, 1]], "loss", true, /steeper/],
    [[[0, 1], [5, 0], [9, 1]], "value", true, null],
  ])("%j as %s", (graph, kind, convex, message) => {
    const problem = graphProblem(graph, kind, convex);
    if (message) expect(problem).toMatch(message);
    else expect(problem).toBeNull();
  });
});

describe("documents", () => {
  it("reads graphs in either direction and writes them back in it", () => {
    const qos = { loss: [[1, 1], [0, 0]], latency: [[0, 1], [2, 0]] };
    expect(graphOf(qos, "loss")).toEqual([[0, 0], [1, 1]]);
    expect(withGraph(qos, "loss", [[0, 0.1], [1, 1]])?.loss).toEqual([[1, 1], [0, 0.1]]);
  });

  it("keeps the field of a value graph, and drops the weight of a removed graph", () => {
    const qos = { value: { on: "cnt", graph: [[3, 0.2], [10, 1]] }, latency: [[0, 1], [1, 0]], weights: { value: 2 } };
    expect(withGraph(qos, "value", [[3, 0.5], [10, 1]])?.value).toEqual({ on: "cnt", graph: [[3, 0.5], [10, 1]] });
    expect(withGraph(qos, "value", null)).toEqual({ latency: [[0, 1], [1, 0]] });
    expect(withGraph({ latency: [[0, 1], [1, 0]] }, "latency", null)).toBeNull();
  });
});

describe("utility", () => {
  it("is linear between points and flat beyond", () => {
    expect([-1, 0, 2, 6, 10, 99].map((x) => utilityAt(latency, x))).toEqual([1, 1, 1, 0.5, 0, 0]);
    expect([goodUntil(latency), goodUntil([[0, 1], [5, 1]])]).toEqual([2, Infinity]);
  });

  it("is predicted from what was observed, by the weights", () => {
    const description = {
      quality: { delays: [[1, 30], [6, 10]], history: [{ ago_s: 3, delay_s: 2.25, delivered: 40, utility: 1 }], delivered: 80, shed: 20 },
    };
    const observed = observedOf(description, []);
    expect(predicted({ latency: [[0, 1], [2, 1], [10, 0]] }, observed)).toBeCloseTo(0.875);
    const both = { latency: [[0, 1], [2, 1], [10, 0]], loss: [[0, 0], [1, 1]], weights: { loss: 3 } };
    expect(predicted(both, observed)).toBeCloseTo((0.875 + 3 * 0.8) / 4);
    expect(predicted({ value: { on: "n", graph: [[0, 0], [1, 1]] } }, observed)).toBeNull();
    expect(predicted({ ...both, throughput: [[0, 0], [1, 1]] }, { ...observed, throughput: null })).toBeCloseTo((0.875 + 3 * 0.8) / 4);
    expect(observed.throughput).toEqual([{ x: 40 / 60, weight: 1 }]);
  });

  it("counts observations in bars", () => {
    expect(histogram([{ x: 0.5, weight: 2 }, { x: 3, weight: 1 }, { x: 99, weight: 1 }], 0, 4, 4)).toEqual([1, 0, 0, 1]);
  });
});

describe("scale", () => {
  it("goes to the screen and back", () => {
    const domain = domainOf(latency, "latency");
    expect(valueX(screenX(7.3, domain), domain)).toBeCloseTo(7.3);
    expect(domain).toEqual({ low: 0, high: 12.5 });
    const slow = [{ x: 1, weight: 50 }, { x: 30, weight: 49.5 }, { x: 400, weight: 0.5 }];
    expect(domainOf(latency, "latency", slow).high).toBe(30);
    expect(domainOf(latency, "latency", [{ x: 400, weight: 1 }]).high).toBe(50);
    expect(ticks(domain)).toEqual([0, 2, 4, 6, 8, 10, 12]);
    expect(shownTicks(domain)).toEqual([0, 2, 4, 6, 8, 10, 12]);
    expect(gridStep(12.5)).toBe(0.05);
  });

  it("leaves out ticks that would be cut off or run into each other", () => {
    const wide = { low: 0, high: 5_000_000 };
    const shown = shownTicks(wide);
    expect(ticks(wide)).toContain(5_000_000);
    expect(shown).not.toContain(5_000_000);
    expect(shown.length).toBeGreaterThan(2);
    for (const at of shown) expect(screenX(at, wide) + String(at).length * 2.9).toBeLessThanOrEqual(WIDTH);
  });
});
