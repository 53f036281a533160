import { describe, expect, it } from "vitest";

import { askable, pointOf, unkeptArc } from "./askable";
import { chartColumns, chartLines, defaultChoice } from "./chartable";

const fields = [
  { name: "machine", type: "string" },
  { name: "at", type: "timestamp" },
  { name: "celsius", type: "double" },
];

describe("charts of results", () => {
  it("takes the time, the last number and a line for each text", () => {
    expect(defaultChoice(chartColumns(fields))).toEqual({ x: "at", y: "celsius", by: "machine" });
    expect(defaultChoice(chartColumns([{ name: "a", type: "int" }]))).toBeNull();
    expect(defaultChoice(chartColumns([{ name: "time", type: "bigint" }, { name: "n", type: "int" }]))).toMatchObject({ x: "time", y: "n" });
  });

  it("aligns lines on a common time in order", () => {
    const rows = [
      ["b", "1970-01-01T00:00:02Z", 5],
      ["a", "1970-01-01T00:00:01Z", 1],
      ["a", "1970-01-01T00:00:02Z", 2],
      ["a", null, 3],
    ];
    const found = chartLines(fields, rows, { x: "at", y: "celsius", by: "machine" });
    expect(found.at).toEqual([1, 2]);
    expect(found.series).toEqual([
      { label: "a", values: [1, 2] },
      { label: "b", values: [undefined, 5] },
    ]);
  });

  it("shows eight lines and says how many more there are", () => {
    const rows = Array.from({ length: 20 }, (_, at) => [`m${at}`, "1970-01-01T00:00:01Z", at]);
    const found = chartLines(fields, rows, { x: "at", y: "celsius", by: "machine" });
    expect([found.series.length, found.omitted]).toEqual([8, 12]);
  });
});

describe("what can be asked", () => {
  it("has points, views and tables with their fields", () => {
    const network = {
      network: "n",
      connection_points: { recent: { on: "hot" } },
      views: { seen: { from: "hot" } },
      tables: { accounts: { schema: { vid: "int", balance: "double" } } },
    };
    const arcs = { cold: { fields: [], progress: [] }, hot: { fields: [{ name: "celsius", type: "double" }], progress: [] } };
    const found = askable(network, { ok: true, problems: [], cautions: [], arcs, queries: {} });
    expect(found.schema).toEqual({ recent: ["celsius"], seen: ["celsius"], accounts: ["vid", "balance"] });
    expect(found.points).toEqual(["recent", "seen"]);
    expect(unkeptArc("select * from recent join `hot` using (celsius)", found.arcs)).toBe("hot");
    expect(unkeptArc("select * from recent, accounts", found.arcs)).toBeNull();
  });

  it("finds the point that a query reads", () => {
    expect(pointOf("select * FROM b where x", ["a", "b"])).toBe("b");
    expect(pointOf("select 1", ["a", "b"])).toBe("a");
    expect(pointOf("select 1", [])).toBeNull();
  });
});
