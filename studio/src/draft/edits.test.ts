import { describe, expect, it } from "vitest";

import type { NetworkDocument } from "../api/types";
import { difference, isDirty, same } from "./diff";
import { freeName, nameProblem, parents } from "./document";
import { connect, copy, disconnect, group, paste, put, remove, rename, setKey, splice, ungroup } from "./edits";

const plant: NetworkDocument = {
  network: "plant",
  streams: { readings: { schema: { machine: "string", celsius: "double" } } },
  tables: { names: { schema: { machine: "string" } } },
  boxes: {
    hot: { box: "filter", input: "readings", where: "celsius > 97" },
    calm: { box: "map", input: "hot.rest", keep: "*" },
    both: { box: "union", inputs: ["hot", "calm"] },
    named: { box: "join", inputs: ["both", "names"], on: "left.machine = right.machine" },
    count: { box: "latch", input: "hot", by: ["machine"], compute: { n: "count(*)" }, table: "names" },
  },
  queries: { warm: "SELECT r.celsius FROM readings AS r, hot WHERE readings.celsius > 'readings'" },
  connection_points: { recent: { on: "hot", keep: "2 hours" } },
  groups: { heat: ["hot", "calm"], all: ["heat", "both"] },
  outputs: { alerts: { from: "named" }, hot: { from: "hot" } },
};

const box = (document: NetworkDocument, name: string) => document.boxes?.[name] as Record<string, unknown>;

describe("rename", () => {
  it("follows arcs, ports, groups and points, but not outputs of the same name", () => {
    const made = rename(plant, { section: "boxes", name: "hot" }, "warm2");
    expect(box(made, "calm").input).toBe("warm2.rest");
    expect(box(made, "both").inputs).toEqual(["warm2", "calm"]);
    expect(made.groups?.heat).toEqual(["warm2", "calm"]);
    expect(made.connection_points?.recent).toEqual({ on: "warm2", keep: "2 hours" });
    expect(made.outputs?.hot).toEqual({ from: "warm2" });
    expect(made.queries?.warm).toContain("AS r, warm2 WHERE");
    expect(Object.keys(made.boxes ?? {})[0]).toBe("warm2");
  });

  it("renames a stream in SQL, where it is a source or qualifies a field, not in texts", () => {
    const made = rename(plant, { section: "streams", name: "readings" }, "samples");
    expect(made.queries?.warm).toBe("SELECT r.celsius FROM samples AS r, hot WHERE samples.celsius > 'readings'");
  });

  it("renames a table where it is joined and where a latch keeps it", () => {
    const made = rename(plant, { section: "tables", name: "names" }, "labels");
    expect(box(made, "named").inputs).toEqual(["both", "labels"]);
    expect(box(made, "count").table).toBe("labels");
  });

  it("does not change the document that it is given", () => {
    const before = structuredClone(plant);
    rename(plant, { section: "boxes", name: "hot" }, "other");
    expect(plant).toEqual(before);
  });
});

describe("remove", () => {
  it("leaves inputs open: a union loses one, a join keeps its places", () => {
    const made = remove(plant, [{ section: "boxes", name: "both" }, { section: "boxes", name: "calm" }]);
    expect(box(made, "named").inputs).toEqual(["", "names"]);
    const less = remove(plant, [{ section: "boxes", name: "calm" }]);
    expect(box(less, "both").inputs).toEqual(["hot"]);
    expect(made.groups).toEqual({ heat: ["hot"], all: ["heat"] });
  });

  it("removes groups that become empty, and empty sections", () => {
    const made = remove(plant, ["hot", "calm", "both", "named", "count"].map((name) => ({ section: "boxes" as const, name })));
    expect(made.boxes).toBeUndefined();
    expect(made.groups).toBeUndefined();
    expect(made.outputs?.alerts).toEqual({});
  });
});

describe("wiring", () => {
  it("connects single, several and positional inputs", () => {
    expect(box(connect(plant, "calm", { section: "boxes", name: "count", index: 0 }), "count").input).toBe("calm");
    expect(box(connect(plant, "hot.rest", { section: "boxes", name: "both", index: 0 }), "both").inputs).toEqual(["hot", "calm", "hot.rest"]);
    expect(box(connect(plant, "calm", { section: "boxes", name: "named", index: 0 }), "named").inputs).toEqual(["calm", "names"]);
    expect(connect(plant, "calm", { section: "outputs", name: "alerts", index: 0 }).outputs?.alerts).toEqual({ from: "calm" });
  });

  it("disconnects only the input that is meant", () => {
    const twice = setKey(plant, { section: "boxes", name: "named" }, ["inputs"], ["both", "both"]);
    expect(box(disconnect(twice, "both", { section: "boxes", name: "named", index: 1 }), "named").inputs).toEqual(["both", ""]);
    expect(box(disconnect(plant, "hot", { section: "boxes", name: "both", index: 0 }), "both").inputs).toEqual(["calm"]);
  });

  it("splices a box into an arc and leaves other readers of the arc alone", () => {
    const made = splice(plant, "hot", { section: "boxes", name: "both", index: 0 }, "map", { box: "map", keep: "*" });
    expect(box(made, "map")).toEqual({ box: "map", keep: "*", input: "hot" });
    expect(box(made, "both").inputs).toEqual(["map", "calm"]);
    expect(box(made, "count").input).toBe("hot");
  });
});

describe("groups", () => {
  it("nests a new group in the one that all members are in", () => {
    const made = group(plant, "pair", ["hot", "calm"]);
    expect(made.groups).toEqual({ heat: ["pair"], all: ["heat", "both"], pair: ["hot", "calm"] });
    const inner = group(plant, "inner", ["heat", "both"]);
    expect(inner.groups).toEqual({ heat: ["hot", "calm"], all: ["inner"], inner: ["heat", "both"] });
    expect(ungroup(inner, "inner").groups).toEqual({ heat: ["hot", "calm"], all: ["heat", "both"] });
  });

  it("breaks a circle of groups", () => {
    const circle = { network: "n", groups: { a: ["b"], b: ["a"] } };
    expect(parents(circle).size).toBe(1);
  });
});

describe("paste", () => {
  it("gives free names and keeps wires among what is pasted", () => {
    const clip = copy(plant, [{ section: "boxes", name: "hot" }, { section: "boxes", name: "calm" }]);
    const { document, refs } = paste(plant, clip);
    expect(refs.map((ref) => ref.name)).toEqual(["hot2", "calm2"]);
    expect(box(document, "calm2").input).toBe("hot2.rest");
    expect(box(document, "hot2").input).toBe("readings");
  });
});

describe("keys", () => {
  it("sets and removes deep keys, and writes the short form again", () => {
    const ref = { section: "boxes" as const, name: "count" };
    expect(box(setKey(plant, ref, ["compute", "m"], "max(celsius)"), "count").compute).toEqual({ n: "count(*)", m: "max(celsius)" });
    expect(box(setKey(plant, ref, ["compute", "n"], undefined), "count").compute).toEqual({});
    const query = { section: "queries" as const, name: "warm" };
    expect(setKey(plant, query, ["sql"], "SELECT 1 FROM readings").queries?.warm).toBe("SELECT 1 FROM readings");
    expect(setKey(plant, query, ["results"], "count").queries?.warm).toMatchObject({ results: "count" });
  });

  it("keeps sections in the order of a file", () => {
    const made = put({ network: "n", outputs: { o: { from: "s" } } }, { section: "streams", name: "s" }, { schema: "a int" });
    expect(Object.keys(made)).toEqual(["network", "streams", "outputs"]);
  });
});

describe("difference", () => {
  it("tells added, changed and removed", () => {
    const made = remove(put(setKey(plant, { section: "boxes", name: "hot" }, ["where"], "celsius > 98"), { section: "outputs", name: "more" }, { from: "hot" }), [{ section: "connection_points", name: "recent" }]);
    const found = difference(plant, made);
    expect(found.added).toEqual([{ section: "outputs", name: "more" }]);
    expect(found.changed).toEqual([{ section: "boxes", name: "hot" }]);
    expect(found.removed).toEqual([{ section: "connection_points", name: "recent" }]);
    expect(isDirty(difference(plant, structuredClone(plant)))).toBe(false);
  });

  it("compares by content, not by the order of keys", () => {
    expect(same({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 })).toBe(true);
    expect(same({ a: undefined }, {})).toBe(false);
    expect(same([1, 2], [2, 1])).toBe(false);
  });
});

describe("names", () => {
  it("finds free names and says why a name cannot be used", () => {
    expect(freeName(plant, "boxes", "hot")).toBe("hot2");
    expect(freeName(plant, "boxes", "readings")).toBe("readings2");
    expect(freeName(plant, "outputs", "readings")).toBe("readings");
    expect(freeName(plant, "streams", "2026 data.csv")).toBe("data_csv");
    expect(nameProblem(plant, { section: "boxes", name: "hot" }, "recent")).toContain("taken");
    expect(nameProblem(plant, { section: "boxes", name: "hot" }, "a b")).not.toBeNull();
  });
});
