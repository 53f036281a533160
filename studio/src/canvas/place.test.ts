import Elk from "elkjs/lib/elk.bundled.js";
import type { ElkNode } from "elkjs/lib/elk-api";
import { describe, expect, it } from "vitest";

import type { NetworkDocument } from "../api/types";
import { graphOf } from "./graph";
import { groupingOf } from "./grouping";
import { elkGraph, laidOut } from "./place";

const run = (drawn: ElkNode) => new Elk().layout(drawn);

/** Applications of a filter and an output each, behind one stream. */
function applications(amount: number): NetworkDocument {
  const names = Array.from({ length: amount }, (_, at) => `f${at}`);
  return {
    network: "n",
    streams: { readings: { schema: { a: "int" } } },
    boxes: Object.fromEntries(names.map((name) => [name, { box: "filter", input: "readings", where: "a > 1" }])),
    outputs: Object.fromEntries(names.map((name) => [`out_${name}`, { from: name }])),
  };
}

async function layout(document: NetworkDocument): Promise<Map<string, Required<Pick<ElkNode, "x" | "y" | "width" | "height">>>> {
  const graph = graphOf(document, null, []);
  const found = await laidOut(elkGraph(graph, groupingOf(document, graph), ""), run);
  return new Map((found.children ?? []).map(({ id, x = 0, y = 0, width = 0, height = 0 }) => [id, { x, y, width, height }]));
}

describe("a whole layout", () => {
  it("fills several columns where all readers of a stream would make one", async () => {
    const places = await layout(applications(24));
    const all = [...places.values()];
    expect(all).toHaveLength(49);
    const width = Math.max(...all.map((at) => at.x + at.width));
    const height = Math.max(...all.map((at) => at.y + at.height));
    expect(width / height).toBeGreaterThan(1);
    expect(width / height).toBeLessThan(3);
    for (const one of all)
      for (const other of all) expect(one === other || one.x + one.width <= other.x || other.x + other.width <= one.x || one.y + one.height <= other.y || other.y + other.height <= one.y).toBe(true);
    // What is read stands left of what reads it, and applications keep their order.
    const stream = places.get("readings");
    for (let at = 0; at < 24; at += 1) {
      const [filter, output] = [places.get(`f${at}`), places.get(`output:out_f${at}`) ?? places.get(`out_f${at}`)];
      expect(stream && filter && stream.x + stream.width < filter.x).toBe(true);
      expect(filter && output && filter.x + filter.width < output.x).toBe(true);
      expect(Math.abs((filter?.y ?? 0) - (output?.y ?? 0))).toBeLessThan(88);
    }
    expect((places.get("f0")?.y ?? 0) < (places.get("f23")?.y ?? 0)).toBe(true);
  }, 30_000);

  it("leaves a small network as it is", async () => {
    const document = applications(4);
    const graph = graphOf(document, null, []);
    const drawn = elkGraph(graph, groupingOf(document, graph), "");
    const places = await layout(document);
    const plain = await run(drawn);
    for (const child of plain.children ?? []) expect(places.get(child.id)?.y).toBe(child.y);
  }, 30_000);
});
