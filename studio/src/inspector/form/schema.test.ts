import { describe, expect, it } from "vitest";

import schema from "../../../../docs/network.schema.json";
import type { Json, NetworkDocument } from "../../api/types";
import { problemAt, readableFields, yamlWords } from "./context";
import { asSchema, keysOf, resolve, schemaFor, shapeOf, variantOf } from "./schema";

const root = schema as unknown as Json;
const document: NetworkDocument = {
  network: "n",
  streams: { s: { schema: { a: "int", at: "timestamp" } }, t: { schema: { b: "int" } } },
  superboxes: { crowding: { parameters: { limit: 30, least: { type: "int", default: 3, description: "how many" } }, inputs: ["in"], boxes: {}, outputs: "x" } },
  boxes: { j: { box: "join", inputs: ["s", "t"] }, c: { box: "crowding", input: "s" } },
};
const shape = (section: "boxes" | "streams" | "queries", declaration: Record<string, Json>, key: string) => {
  const schema = schemaFor(root, { section, name: "x" }, document, declaration);
  return shapeOf(root, asSchema(schema.properties)[key]);
};

describe("forms of the published schema", () => {
  it("knows the shape of what boxes take", () => {
    expect(shape("boxes", { box: "filter" }, "where").kind).toBe("text");
    expect(shape("boxes", { box: "filter" }, "routes").kind).toBe("map");
    expect(shape("boxes", { box: "aggregate" }, "order").kind).toBe("object");
    expect(shape("boxes", { box: "aggregate" }, "on_change")).toMatchObject({ kind: "enum", values: ["keep", "drain", "reset"] });
    expect(shape("boxes", { box: "latch" }, "by").kind).toBe("texts");
    expect(shape("boxes", { box: "join" }, "within").kind).toBe("scalar");
    expect(shape("boxes", { box: "wait_for" }, "timeout").kind).toBe("number");
    expect(shape("boxes", { box: "map" }, "keep").kind).toBe("choice");
    expect(shape("streams", {}, "progress").kind).toBe("choice");
  });

  it("has a form for every box, stream, table, query, point, view and output", () => {
    const kinds = asSchema(asSchema(asSchema(root).properties).boxes).additionalProperties;
    for (const each of asSchema(kinds).oneOf as Json[]) expect(Object.keys(asSchema(resolve(root, each).properties)).length).toBeGreaterThan(3);
    for (const section of ["streams", "tables", "queries", "connection_points", "views", "outputs"] as const)
      expect(Object.keys(asSchema(schemaFor(root, { section, name: "x" }, document, {}).properties)).length).toBeGreaterThan(2);
  });

  it("tells queries from families, and stateful maps from others", () => {
    expect(asSchema(schemaFor(root, { section: "queries", name: "q" }, document, { sql: "" }).properties).values).toBeUndefined();
    expect(asSchema(schemaFor(root, { section: "queries", name: "q" }, document, { sql: "", values: [] }).properties).values).toBeDefined();
    expect(asSchema(schemaFor(root, { section: "boxes", name: "m" }, document, { box: "map", state: true }).properties).udf).toBeDefined();
  });

  it("offers the parameters of a superbox", () => {
    const schema = schemaFor(root, { section: "boxes", name: "c" }, document, { box: "crowding" });
    expect(asSchema(asSchema(schema.properties).least)).toMatchObject({ default: 3, description: "how many" });
  });

  it("knows the keys at any depth, and offers them in YAML with arcs and fields", () => {
    const keys = keysOf(root, schemaFor(root, { section: "boxes", name: "x" }, document, { box: "aggregate" }));
    for (const key of ["order", "slack", "window", "advance", "compute"]) expect(keys).toContain(key);
    expect(keys).not.toContain("inputs");
    for (const key of ["streams", "heartbeat", "outputs", "latency"]) expect(keysOf(root, root)).toContain(key);
    const words = yamlWords(["order"], ["s", "a"], [{ label: "a", detail: "int" }]);
    expect(words.map((word) => [word.label, word.detail])).toEqual([["order", "key"], ["s", "arc"], ["a", "int"]]);
  });

  it("knows which form a value has", () => {
    const keep = shape("boxes", { box: "map" }, "keep");
    if (keep.kind !== "choice") throw new Error("keep is a choice");
    expect(keep.variants[variantOf(keep.variants, ["a"])]?.label).toBe("list");
    expect(keep.variants[variantOf(keep.variants, "*")]?.label).toBe("*");
  });
});

it("names the fields of a join's sides", () => {
  expect(readableFields(document, null, { section: "boxes", name: "j" }).map((field) => field.name)).toEqual(["left.a", "left.at", "right.b"]);
});

it("finds problems at and below a key", () => {
  const problem = { type: "", title: "", status: 400, detail: "d", code: "C", path: ["boxes", "j", "left", "on"] };
  expect(problemAt([problem], ["left"])).toBe(problem);
  expect(problemAt([problem], ["left", "on"])).toBe(problem);
  expect(problemAt([problem], ["right"])).toBeUndefined();
});
