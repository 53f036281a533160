import { describe, expect, it } from "vitest";

import type { Layout, NetworkDocument } from "../api/types";
import { fitting, fittingEntries } from "./fit";
import { graphOf, type NodeInfo } from "./graph";
import { elkGraph, placeBeside } from "./place";
import { groupingOf, openGroups } from "./grouping";
import { frameAt, labelRoom, placesOf, sceneOf, sizeOf, undisplaced } from "./scene";
import { intoView } from "./viewport";

const plant: NetworkDocument = {
  network: "plant",
  streams: { readings: { schema: { a: "int" } } },
  tables: { names: { schema: { a: "int" } } },
  boxes: {
    hot: { box: "filter", input: "readings", routes: { high: "a > 9", low: "a < 1" } },
    means: { box: "aggregate", input: "hot.high" },
    both: { box: "union", inputs: ["hot.high", "hot.low"] },
    named: { box: "join", inputs: ["both", "names"] },
  },
  queries: { q: "SELECT * FROM readings" },
  groups: { heat: ["hot", "means"] },
  outputs: { out: { from: "named" } },
};
const graph = graphOf(plant, null, []);
const grouping = groupingOf(plant, graph);
const positions: Layout["positions"] = {
  readings: [0, 0],
  "group:heat": [300, 0],
  hot: [24, 40],
  means: [324, 40],
  both: [600, 0],
  names: [300, 200],
  named: [900, 0],
  q: [0, 200],
  "output:out": [1200, 0],
};
const layout = (open: boolean): Layout => ({ positions, open: { "group:heat": open }, bookmarks: [] });

describe("graph", () => {
  it("has ports by meaning and edges by arc", () => {
    expect(graph.nodes.get("hot")?.outputs.map((port) => port.arc)).toEqual(["hot.high", "hot.low", "hot.rest"]);
    expect(graph.nodes.get("means")?.outputs.map((port) => port.label)).toEqual(["", "late"]);
    expect(graph.nodes.get("named")?.inputs.map((port) => port.label)).toEqual(["left", "right"]);
    expect(graph.edges.map((edge) => edge.id)).toContain("hot.high-both");
    expect(graph.edges.find((edge) => edge.target === "q")?.implied).toBe(true);
    expect(graph.edges.find((edge) => edge.arc === "names")?.targetPort).toBe("in1");
  });
});

it("shows an instance of a superbox with its parameters, and its only output once", () => {
  const border: NetworkDocument = {
    network: "border",
    streams: { reports: { schema: { pos: "int" } } },
    superboxes: { crowding: { parameters: { limit: 30 }, inputs: ["in"], boxes: {}, outputs: "few" } },
    boxes: { crowd: { box: "crowding", input: "reports", limit: 40, description: "many" } },
    outputs: { out: { from: "crowd.out" } },
  };
  const arcs = Object.fromEntries(["reports", "crowd", "crowd.out", "crowd/few"].map((arc) => [arc, { fields: [], progress: [] }]));
  const drawn = graphOf(border, { ok: true, problems: [], cautions: [], queries: {}, arcs }, []);
  expect(drawn.nodes.get("crowd")?.outputs.map((port) => port.arc)).toEqual(["crowd"]);
  expect(drawn.nodes.get("crowd")?.telling).toBe("limit 40");
  expect(drawn.edges.find((edge) => edge.arc === "crowd.out")?.sourcePort).toBe("out");
});

describe("sizes", () => {
  it("gives labels of ports room of their own inside a card", () => {
    const plain = sizeOf(graph.nodes.get("both") ?? null).width;
    expect(labelRoom(graph.nodes.get("both") as NodeInfo)).toEqual({ left: 0, right: 0 });
    expect(labelRoom(graph.nodes.get("named") as NodeInfo).left).toBeGreaterThan("right".length * 5);
    expect(sizeOf(graph.nodes.get("named") ?? null).width).toBeGreaterThan(plain + 60);
  });
});

describe("scene", () => {
  it("draws one edge to a closed group for all that read the arc in it", () => {
    const two: NetworkDocument = { ...plant, groups: { heat: ["means", "both"] } };
    const drawn = graphOf(two, null, []);
    const scene = sceneOf(drawn, groupingOf(two, drawn), layout(false));
    expect(scene.edges.filter((edge) => edge.arc === "hot.high").map((edge) => [edge.to, edge.targets])).toEqual([["group:heat", ["means", "both"]]]);
  });

  it("leaves the usual gap behind groups that stand one above the other", () => {
    const two: NetworkDocument = { ...plant, groups: { heat: ["hot", "means"], rest: ["both", "named"] } };
    const drawn = graphOf(two, null, []);
    const at = { readings: [24, 100], "group:heat": [260, 40], "group:rest": [256, 160], hot: [24, 40], means: [336, 40], both: [24, 40], named: [276, 40], names: [24, 300], q: [260, 300], "output:out": [512, 40] } as Layout["positions"];
    const scene = sceneOf(drawn, groupingOf(two, drawn), { positions: at, open: {}, bookmarks: [] });
    const right = Math.max(...scene.nodes.filter((node) => node.open).map((node) => node.x + node.width));
    expect((scene.nodes.find((node) => node.id === "output:out")?.x ?? 0) - right).toBeLessThanOrEqual(64);
  });

  it("keeps an output beside the group that it reads, below another open group", () => {
    const two: NetworkDocument = { ...plant, groups: { heat: ["hot", "means"], rest: ["both", "named"] } };
    const drawn = graphOf(two, null, []);
    const at = { readings: [24, 40], "group:heat": [260, 40], "group:rest": [260, 160], hot: [24, 40], means: [336, 200], both: [24, 40], named: [276, 40], names: [24, 300], q: [24, 400], "output:out": [512, 164] } as Layout["positions"];
    const kept: Layout = { positions: at, open: {}, bookmarks: [] };
    const scene = sceneOf(drawn, groupingOf(two, drawn), kept);
    const find = (id: string) => scene.nodes.find((node) => node.id === id);
    expect(find("group:rest")?.y).toBeGreaterThan(160);
    expect((find("output:out")?.y ?? 0) - (find("group:rest")?.y ?? 0)).toBe(164 - 160);
    expect(find("readings")?.y).toBe(40);
    for (const node of scene.nodes) expect(undisplaced(scene, kept, node.id, node.x, node.y)).toEqual(at[node.id]);
  });

  it("hides what a closed group contains and draws its arcs to the group", () => {
    const scene = sceneOf(graph, grouping, layout(false));
    expect(scene.nodes.map((node) => node.id)).not.toContain("hot");
    expect(scene.edges.filter((edge) => edge.from === "group:heat").map((edge) => edge.arc)).toEqual(["hot.high", "hot.low"]);
    expect(scene.nodes.find((node) => node.id === "both")?.x).toBe(600);
  });

  it("pushes neighbours aside while a group is open, and nothing overlaps it", () => {
    const scene = sceneOf(graph, grouping, layout(true));
    const frame = scene.nodes.find((node) => node.id === "group:heat");
    const both = scene.nodes.find((node) => node.id === "both");
    const names = scene.nodes.find((node) => node.id === "names");
    expect(both?.x).toBeGreaterThanOrEqual((frame?.x ?? 0) + (frame?.width ?? 0));
    expect(names?.y).toBeGreaterThanOrEqual((frame?.y ?? 0) + (frame?.height ?? 0));
    expect(scene.nodes.findIndex((node) => node.id === "group:heat")).toBeLessThan(scene.nodes.findIndex((node) => node.id === "hot"));
  });

  it("keeps the position of a node that was not moved", () => {
    const scene = sceneOf(graph, grouping, layout(true));
    for (const node of scene.nodes) expect(undisplaced(scene, layout(true), node.id, node.x, node.y)).toEqual(positions[node.id]);
  });

  it("finds a place to keep wherever a node is dropped beside an open group", () => {
    const scene = sceneOf(graph, grouping, layout(true));
    const frame = scene.nodes.find((node) => node.id === "group:heat");
    for (let y = (frame?.y ?? 0) - 40; y < (frame?.y ?? 0) + (frame?.height ?? 0) + 40; y += 9)
      for (const x of [-300, 1100]) {
        const kept = { ...layout(true), positions: { ...positions, both: undisplaced(scene, layout(true), "both", x, y) } };
        const shown = sceneOf(graph, grouping, kept).nodes.find((node) => node.id === "both");
        expect([Math.round(shown?.x ?? 0), Math.round(shown?.y ?? 0)]).toEqual([x, y]);
      }
  });

  it("names what has no position, by container", () => {
    const scene = sceneOf(graph, grouping, { positions: { "group:heat": [0, 0] }, open: {}, bookmarks: [] });
    expect(scene.missing.get("group:heat")).toEqual(["hot", "means"]);
    expect(scene.missing.get("")).toContain("both");
  });

  it("shows a group alone, with the ends of its arcs outside beside it", () => {
    const scene = sceneOf(graph, grouping, layout(true), "group:heat");
    const find = (id: string) => scene.nodes.find((node) => node.id === id);
    expect(scene.nodes.map((node) => node.id).sort()).toEqual(["both", "hot", "means", "readings"]);
    expect(scene.nodes.filter((node) => node.stub).map((node) => node.id)).toEqual(["readings", "both"]);
    expect((find("readings")?.x ?? 0) + (find("readings")?.width ?? 0)).toBeLessThan(find("hot")?.x ?? 0);
    expect(find("both")?.x).toBeGreaterThan((find("means")?.x ?? 0) + (find("means")?.width ?? 0));
    expect(find("hot")?.parent).toBeNull();
    expect(scene.edges.map((edge) => edge.id).sort()).toEqual(["hot.high-both", "hot.high-means", "hot.low-both", "readings-hot"]);
  });

  it("finds the innermost frame at a place", () => {
    const scene = sceneOf(graph, grouping, layout(true));
    expect(frameAt(scene, 340, 60)).toBe("group:heat");
    expect(frameAt(scene, 10, 10)).toBeNull();
    expect(frameAt(scene, 340, 60, new Set(["group:heat"]))).toBeNull();
    expect(placesOf(scene.nodes).get("hot")).toEqual({ x: 324, y: 40 });
  });

  it("says of several edges of an arc which is the first", () => {
    const edges = sceneOf(graph, grouping, layout(true)).edges.filter((edge) => edge.arc === "hot.high");
    expect(edges.map((edge) => [edge.first, edge.shared])).toEqual([[true, true], [false, true]]);
  });
});

describe("large networks", () => {
  const chain = (amount: number, prefix: string) => Object.fromEntries(Array.from({ length: amount }, (_, n) => [`${prefix}${n}`, { box: "map", input: n ? `${prefix}${n - 1}` : "s" }]));
  const network = (boxes: NetworkDocument["boxes"], groups: Record<string, string[]> = {}): NetworkDocument => {
    const ends = Object.keys(boxes ?? {}).filter((name) => !Object.values(boxes ?? {}).some((box) => (box as { input: string }).input === name));
    return { network: "large", streams: { s: { schema: "a int" } }, boxes, groups, outputs: Object.fromEntries(ends.map((name) => [`to_${name}`, { from: name }])) };
  };
  const openIn = (document: NetworkDocument, open: Layout["open"] = {}) => {
    const drawn = graphOf(document, null, []);
    const groups = groupingOf(document, drawn);
    return { groups: groups.groups, open: openGroups(drawn, groups, { positions: {}, open, bookmarks: [] }) };
  };

  it("are grouped by application, and the groups are closed", () => {
    const { groups, open } = openIn(network({ ...chain(200, "a"), ...chain(200, "b") }));
    expect([...groups.keys()]).toEqual(["application:to_a199", "application:to_b199"]);
    expect(open.size).toBe(0);
  });

  it("close the largest groups only, as far as needed", () => {
    const members = (prefix: string, amount: number) => Array.from({ length: amount }, (_, n) => `${prefix}${n}`);
    const document = network({ ...chain(250, "a"), ...chain(80, "b") }, { large: members("a", 250), small: members("b", 80) });
    expect([...openIn(document).open]).toEqual(["group:small"]);
    expect(openIn(document, { "group:small": false }).open).toEqual(new Set(["group:large"]));
    expect(openIn(document, { "group:large": true }).open.has("group:large")).toBe(true);
  });

  it("group by application what is in no declared group", () => {
    const document = network({ ...chain(200, "a"), ...chain(200, "b"), ...chain(3, "c") }, { few: ["c0", "c1", "c2"] });
    expect([...openIn(document).groups.keys()]).toContain("application:to_a199");
    expect([...openIn(document).open]).toEqual(["group:few"]);
  });

  it("leave a network as it is that shows no more than that", () => {
    expect(openIn(network({ ...chain(140, "a"), ...chain(140, "b") })).groups.size).toBe(0);
  });
});

describe("placing", () => {
  it("puts a new node right of what it reads, where nothing stands", () => {
    const made = placeBeside(graph, grouping, "", { readings: [0, 0], both: [300, 0] }, ["named", "q"]);
    expect(made.named?.[0]).toBeGreaterThan(500);
    expect(made.q?.[0]).toBeGreaterThan(150);
    expect(made.q).not.toEqual([300, 0]);
  });

  it("gives ELK every item of a container, with ends that exist", () => {
    const drawn = elkGraph(graph, grouping, "");
    const ids = new Set(drawn.children?.flatMap((child) => [child.id, ...(child.ports ?? []).map((port) => port.id)]));
    expect(drawn.children?.map((child) => child.id)).toContain("group:heat");
    for (const edge of drawn.edges ?? []) expect(ids.has(edge.sources[0] ?? "") && ids.has(edge.targets[0] ?? "")).toBe(true);
  });
});

describe("view", () => {
  const size = { width: 1000, height: 600 };
  it("moves no more than needed for a card to be seen", () => {
    const card = { x: 0, y: 0, width: 200, height: 80 };
    expect(intoView(card, { x: 100, y: 100, zoom: 1 }, size)).toBeNull();
    expect(intoView(card, { x: 900, y: 100, zoom: 1 }, size)).toEqual({ x: 776, y: 100, zoom: 1 });
    expect(intoView(card, { x: 100, y: -50, zoom: 0.5 }, size)).toEqual({ x: 100, y: 24, zoom: 0.5 });
  });

  it("does not leave a card under the map or the zoom buttons", () => {
    const card = { x: 0, y: 0, width: 200, height: 80 };
    expect(intoView(card, { x: 700, y: 500, zoom: 1 }, size)).toEqual({ x: 700, y: 384, zoom: 1 });
    expect(intoView(card, { x: 100, y: 900, zoom: 1 }, size)).toEqual({ x: 100, y: 456, zoom: 1 });
    expect(intoView(card, { x: 400, y: 490, zoom: 1 }, size)).toBeNull();
  });
});

describe("fit", () => {
  const field = (type: string) => ({ fields: [{ name: "a", type }], progress: [] });
  const world = { document: plant, graph, arcs: { "hot.high": field("int"), "hot.low": field("int"), means: field("string"), readings: field("int") } };

  it("lights up only inputs that make no cycle and have the types", () => {
    const fits = fitting(world, "means");
    expect(fits.has("hot")).toBe(false);
    expect(fits.has("both")).toBe(false);
    expect(fitting(world, "readings").has("both")).toBe(true);
  });

  it("leaves inputs alone that have an arc already", () => {
    expect(fitting(world, "means").has("named")).toBe(false);
    expect(fitting(world, "means").has("output:out")).toBe(false);
    const open = { ...plant, boxes: { ...plant.boxes, named: { box: "join", inputs: ["both", ""] } } };
    expect([...(fitting({ ...world, document: open, graph: graphOf(open, null, []) }, "means").get("named") ?? [])]).toEqual(["in1"]);
  });

  it("lets tables go into joins, and queries into outputs only", () => {
    const open: NetworkDocument = { ...plant, boxes: { ...plant.boxes, named: { box: "join" } }, outputs: { out: {} } };
    const free = { ...world, document: open, graph: graphOf(open, null, []) };
    expect([...fitting(free, "names").keys()]).toEqual(["named"]);
    expect([...fitting(free, "q").keys()]).toEqual(["output:out"]);
  });

  it("offers what can read an arc", () => {
    const entry = (kind: string, section: "boxes" | "streams" | "outputs", inputs: "none" | "one") => ({ kind, section, inputs, summary: "", telling: "", ports: [], starter: {} });
    const palette = [entry("filter", "boxes", "one"), entry("stream", "streams", "none"), entry("output", "outputs", "one")];
    expect(fittingEntries(graph, palette, "readings").map((each) => each.kind)).toEqual(["filter", "output"]);
    expect(fittingEntries(graph, palette, "q").map((each) => each.kind)).toEqual(["output"]);
  });
});
