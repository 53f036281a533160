import { expect, it } from "vitest";

import { renameSource, sourcesOf } from "./sql";

const names = (sql: string) => sourcesOf(sql).map((source) => source.name);

it("finds the sources of the papers' queries", () => {
  expect(names("SELECT sid FROM reports [RANGE 1 min, SLIDE 1 min, WA ts], other WHERE a > 1, b")).toEqual(["reports", "other"]);
  expect(names("FROM S SELECT a")).toEqual(["S"]);
  expect(names("SELECT a FROM s UNION SELECT a FROM t")).toEqual(["s", "t"]);
  expect(names("SELECT * FROM hot.rest, `north/across`")).toEqual(["hot.rest", "north/across"]);
  expect(names("UPDATE accounts SET balance = balance - :toll WHERE vid = :vid")).toEqual(["accounts"]);
  expect(names("SELECT 'FROM x' -- FROM y\nFROM z")).toEqual(["z"]);
});

it("renames quoted sources", () => {
  expect(renameSource("SELECT * FROM `north/across` WHERE north = 1", "north", "south")).toBe("SELECT * FROM `south/across` WHERE north = 1");
});
