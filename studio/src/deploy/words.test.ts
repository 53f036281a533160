import { expect, it } from "vitest";

import { reportLines, summary } from "./words";

const NOTHING = { added: [], removed: [], rebuilt: [], kept: [], drained: [], reset: [] };

it("says what is lost first", () => {
  const lines = reportLines({ ...NOTHING, added: ["new"], removed: ["old"], rebuilt: ["a", "b"], kept: ["a"], reset: ["b"] });
  expect(lines.map((line) => `${line.sign}${line.name}`)).toEqual(["−old", "~b", "~a", "+new"]);
  expect(lines[1]?.text).toContain("reset");
  expect(lines[2]?.text).toContain("kept");
});

it("sums up, also if nothing changes", () => {
  expect(summary({ ...NOTHING, added: ["x"], removed: ["y", "z"] })).toBe("1 added, 2 removed");
  expect(summary(NOTHING)).toBe("Nothing that runs changes.");
});
