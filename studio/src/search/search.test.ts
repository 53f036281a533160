import { expect, it } from "vitest";

import type { NetworkDocument, PaletteEntry } from "../api/types";
import { find } from "./index";

const plant: NetworkDocument = {
  network: "plant",
  streams: { readings: { schema: { celsius: "double" } } },
  boxes: { hot: { box: "filter", input: "readings", where: "celsius > 97", tags: ["safety"], description: "too warm for the press" } },
  outputs: { alerts: { from: "hot" } },
};
const report = { ok: true, problems: [], cautions: [], queries: {}, arcs: { readings: { fields: [{ name: "celsius", type: "double" }], progress: [] } } };
const aggregate: PaletteEntry = { kind: "aggregate", section: "boxes", summary: "Compute over windows.", telling: "window", inputs: "one", ports: [], starter: {} };
const names = (text: string) => find(plant, report, [aggregate], text).map((found) => (found.type === "add" ? `+${found.entry.kind}` : found.ref.name));

it("finds by name, tag, description, field and kind", () => {
  expect(names("hot")[0]).toBe("hot");
  expect(names("safety")).toEqual(["hot"]);
  expect(names("press")).toEqual(["hot"]);
  expect(names("celsius")).toEqual(["readings"]);
  expect(names("filter")).toEqual(["hot"]);
});

it("offers boxes to add by the beginning of their kind, and everything for no text", () => {
  expect(names("agg")).toEqual(["+aggregate"]);
  expect(names("")).toEqual(["readings", "hot", "alerts"]);
});
