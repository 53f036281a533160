import { describe, expect, it } from "vitest";

import { nextRow } from "./movement";
import { append, columnWidths, EMPTY_BUFFER, inferFields, tupleJson, visibleRange } from "./rows";
import { scalar } from "./scalar";

describe("rows", () => {
  it("keeps the newest rows and counts the others", () => {
    let buffer = append(EMPTY_BUFFER, [{ a: 1 }, { a: 2 }], 0, 3);
    buffer = append(buffer, [{ a: 3 }, { a: 4, b: "x" }], 7, 3);
    expect(buffer).toEqual({ names: ["a"], rows: [[2], [3], [4]], forgotten: 1, dropped: 7 });
  });

  it("infers types by the latest values that are not null", () => {
    const fields = inferFields(["n", "t", "s", "e"], [[1, "2026-01-01T00:00:00Z", "x", null], [null, null, null, null]]);
    expect(fields.map((field) => field.type)).toEqual(["double", "timestamp", "string", ""]);
  });

  it("copies tuples without the columns of the engine", () => {
    const fields = ["_seq", "_at", "machine"].map((name) => ({ name, type: "string" }));
    expect(tupleJson(fields, [1, "now", "press"])).toBe('{"machine":"press"}');
  });

  it("draws only what is in view", () => {
    expect(visibleRange(10_000, 2400, 240, 24)).toEqual({ from: 92, to: 118 });
    expect(visibleRange(3, 0, 240, 24)).toEqual({ from: 0, to: 3 });
    expect(visibleRange(0, 500, 240, 24)).toEqual({ from: 0, to: 0 });
  });

  it("has widths in steps, within bounds", () => {
    const fields = [{ name: "id", type: "int" }, { name: "text", type: "string" }];
    expect(columnWidths(fields, [[1, "x".repeat(200)]])).toEqual([8, 44]);
    expect(columnWidths(fields, [[123456, ""]])).toEqual(columnWidths(fields, [[12, ""]]));
  });

  it("moves by keys and stays within the rows", () => {
    expect(nextRow("ArrowDown", null, 5, 3)).toBe(0);
    expect(nextRow("PageDown", 3, 5, 3)).toBe(4);
    expect(nextRow("ArrowUp", 0, 5, 3)).toBe(0);
    expect(nextRow("x", 0, 5, 3)).toBeNull();
    expect(nextRow("End", null, 0, 3)).toBeNull();
  });

  it("reads what people type", () => {
    expect(["", " 12 ", "-1.5", "2026-01-01"].map(scalar)).toEqual([null, 12, -1.5, "2026-01-01"]);
  });
});
