import { expect, it } from "vitest";

import { declarationYaml, networkYaml, parseNetwork, parseYaml, rangeOf } from "./yaml";

it("writes short declarations in a line and reads them back", () => {
  const network = { network: "n", boxes: { hot: { box: "filter", input: "s", where: "a > 1" } }, outputs: { o: { from: "hot" } } };
  const text = networkYaml(network);
  expect(text).toContain("hot: {box: filter, input: s, where: a > 1}");
  expect(parseNetwork(text)).toEqual({ network });
});

it("keeps SQL of several lines as a block", () => {
  const value = { sql: "SELECT a\nFROM s", results: "keep" };
  expect(declarationYaml(value)).toContain("sql: |");
  expect(parseYaml(declarationYaml(value))).toEqual({ value });
});

it("says where a text is broken and what is no network", () => {
  expect(parseYaml("a: [1, 2")).toMatchObject({ line: 1 });
  const broken = "a: 1\n  b: 2\n";
  const found = parseYaml(broken);
  if (!("error" in found)) throw new Error("it is broken");
  expect(broken.slice(0, found.from).split("\n")).toHaveLength(found.line);
  expect(found.to).toBeGreaterThan(found.from);
  expect(parseNetwork("a: 1")).toMatchObject({ error: expect.stringContaining("network") as string });
  expect(parseNetwork("network: n\nboxes: {")).toHaveProperty("error");
});

it("finds where a path is in the text, or the nearest that there is", () => {
  const text = "box: filter\nroutes:\n  high: a > 1\n";
  const [from, to] = rangeOf(text, ["routes", "high"]);
  expect(text.slice(from, to)).toBe("a > 1");
  const [start, end] = rangeOf(text, ["routes", "low"]);
  expect(text.slice(start, end)).toContain("high");
});
