import { describe, expect, it } from "vitest";

import { selectedNodes, selectOnly, useFlow, type FlowEdge, type FlowNode } from "./flow";
import { cursorNode, keepCursor, stepFrom, walk } from "./walk";

const node = (id: string, x: number, y: number) => ({ id, position: { x, y }, data: {}, height: 10 }) as unknown as FlowNode;
const edge = (source: string, target: string) => ({ id: `${source}-${target}`, source, target }) as unknown as FlowEdge;
const nodes = [node("s", 0, 0), node("a", 300, 0), node("b", 300, 100), node("o", 600, 0)];
const edges = [edge("s", "a"), edge("s", "b"), edge("a", "o"), edge("b", "o")];
const from = (at: { node?: string; edge?: string }, direction: "left" | "right" | "up" | "down") => stepFrom(nodes, edges, at, direction);

it("goes from a node over the arc to the next node, and back", () => {
  expect(from({ node: "s" }, "right").edge).toBe("s-a");
  expect(from({ edge: "s-a" }, "right")).toEqual({ node: "a" });
  expect(from({ edge: "s-a" }, "left")).toEqual({ node: "s" });
  expect(from({ node: "o" }, "left").edge).toBe("a-o");
});

it("chooses among arcs and nodes with up and down, and stays at the end", () => {
  expect(from({ edge: "s-a" }, "down")).toEqual({ edge: "s-b" });
  expect(from({ edge: "s-b" }, "down")).toEqual({ edge: "s-b" });
  expect(from({ node: "a" }, "down")).toEqual({ node: "b" });
  expect(from({ node: "o" }, "right").node).toBe("o");
});

it("begins at the left", () => {
  expect(from({}, "right")).toEqual({ node: "s" });
});

describe("keeping", () => {
  it("selects several boxes while walking, until they are given up", () => {
    const at = (id: string, x: number) => ({ id, type: "box", position: { x, y: 0 }, data: { info: { id, kind: "box", name: id } } }) as unknown as FlowNode;
    useFlow.setState({ nodes: [at("a", 0), at("b", 300), at("c", 600)], edges: [{ id: "a-b", source: "a", target: "b" }, { id: "b-c", source: "b", target: "c" }] });
    const selected = () => selectedNodes().map((node) => node.id);
    walk("right");
    keepCursor();
    walk("right");
    walk("right");
    expect(selected()).toEqual(["a", "b"]);
    keepCursor();
    walk("right");
    walk("right");
    expect(selected()).toEqual(["a", "b", "c"]);
    expect(cursorNode()?.id).toBe("c");
    selectOnly(new Set(["c"]), new Set());
    walk("left");
    walk("left");
    expect(selected()).toEqual(["b"]);
  });
});
