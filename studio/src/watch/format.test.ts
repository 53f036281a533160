import { describe, expect, it } from "vitest";

import { ago, bytes, count, duration, exact, fineShare, marks, plural, rate, share, utility, value } from "./format";

describe("figures", () => {
  it.each([
    [0.00042, "0.042 %"],
    [0.25, "25 %"],
    [null, "–"],
  ])("share %s on an axis is %s", (value, text) => expect(fineShare(value)).toBe(text));

  it.each([
    [0, "0"],
    [312, "312"],
    [3.24, "3.2"],
    [999.9, "1000"],
    [1000, "1.0 k"],
    [12_400, "12.4 k"],
    [124_000, "124 k"],
    [999_960, "1.0 M"],
    [1_300_000, "1.3 M"],
    [null, "–"],
    [NaN, "–"],
  ])("count %s is %s", (value, text) => expect(count(value)).toBe(text));

  it.each([
    [0, "0/s"],
    [0.01, "<0.1/s"],
    [12_400, "12.4 k/s"],
  ])("rate %s is %s", (value, text) => expect(rate(value)).toBe(text));

  it.each([
    [0, "0 s"],
    [2e-7, "<1 µs"],
    [3.2e-6, "3.2 µs"],
    [0.0034, "3.4 ms"],
    [0.9996, "1.0 s"],
    [12, "12.0 s"],
    [150, "2.5 min"],
    [7200, "2 h"],
    [172_800, "2 d"],
  ])("duration %s is %s", (value, text) => expect(duration(value)).toBe(text));

  it.each([
    [0, "0 %"],
    [0.0001, "<0.1 %"],
    [0.003, "0.3 %"],
    [0.97, "97 %"],
    [1, "100 %"],
    [3.2, "×3.2"],
    [null, "–"],
  ])("share %s is %s", (value, text) => expect(share(value)).toBe(text));

  it("never rounds utility up to 1", () => {
    expect(utility(0.999)).toBe("0.99");
    expect(utility(1)).toBe("1.00");
  });

  it.each([
    [97.30000000000001, "97.3"],
    [0.1234567891, "0.123457"],
    [0.0000012345678, "0.00000123457"],
    [1234.5678912, "1234.57"],
    [-71234567.891, "-71234567.9"],
    [9007199254740991, "9007199254740991"],
    [null, "null"],
    [{ a: 0.1234567891 }, '{"a":0.1234567891}'],
  ])("value %s is read as %s", (found, text) => expect(Number(value(found)) || value(found)).toBe(Number(text) || text));

  it("keeps every digit beside what is read", () => expect(exact(97.30000000000001)).toBe("97.30000000000001"));

  it("writes bytes, ages, marks and plurals", () => {
    expect([bytes(512), bytes(1_300_000)]).toEqual(["512 B", "1.3 MB"]);
    expect([ago(0.2), ago(12.4), ago(200)]).toEqual(["now", "12 s ago", "3 min ago"]);
    expect(marks({ ts: 12, at: "2026-01-01T00:00:00Z" })).toBe("ts ≥ 12, at ≥ 2026-01-01T00:00:00Z");
    expect([plural(1, "tuple"), plural(0, "tuple"), plural(2000, "query", "queries")]).toEqual(["1 tuple", "0 tuples", "2.0 k queries"]);
  });
});
