import { describe, expect, it } from "vitest";

import type { Json } from "../api/types";
import { mergePatch } from "./mergePatch";

describe("mergePatch", () => {
  // The examples of RFC 7396, appendix A.
  const examples: [Json, Json, Json][] = [
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [["a", "b"], ["c", "d"], ["c", "d"]],
    [{ a: "b" }, ["c"], ["c"]],
    [{ a: "foo" }, null, null],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: "b", c: null }, { a: "b" }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  it.each(examples)("%j with %j is %j", (target, patch, result) => {
    expect(mergePatch(target, patch)).toEqual(result);
  });

  it("keeps the identity of what the patch does not mention", () => {
    const before = { boxes: { hot: { rate: 1 }, cold: { rate: 2 } }, arcs: { hot: { queued: 0 } } };
    const after = mergePatch(before, { boxes: { hot: { rate: 3 } } }) as typeof before;
    expect(after.boxes.hot).toEqual({ rate: 3 });
    expect(after.boxes.cold).toBe(before.boxes.cold);
    expect(after.arcs).toBe(before.arcs);
    expect(before.boxes.hot.rate).toBe(1);
  });
});
