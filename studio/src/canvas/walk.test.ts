import { expect, it } from "vitest";

import type { FlowEdge, FlowNode } from "./flow";
import { stepFrom } from "./walk";

const node = (id: string, x: number, y: number) => ({ id, position: { x, y }, data: {}, height: 10 }) as unknown as FlowNode;
const edge = (source: string, target: string) => ({ id: `${source}-${target}`, source, target }) as unknown as FlowEdge;
const nodes = [node("s", 0, 0), node("a", 300, 0), node("b", 300, 100), node("o", 600, 0)];
const edges = [edge("s", "a"), edge("s", "b"), edge("a", "o"), edge("b", "o")];
const walk = (at: { node?: string; edge?: string }, direction: "left" | "right" | "up" | "down") => stepFrom(nodes, edges, at, direction);

it("goes from a node over the arc to the next node, and back", () => {
  expect(walk({ node: "s" }, "right").edge).toBe("s-a");
  expect(walk({ edge: "s-a" }, "right")).toEqual({ node: "a" });
  expect(walk({ edge: "s-a" }, "left")).toEqual({ node: "s" });
  expect(walk({ node: "o" }, "left").edge).toBe("a-o");
});

it("chooses among arcs and nodes with up and down, and stays at the end", () => {
  expect(walk({ edge: "s-a" }, "down")).toEqual({ edge: "s-b" });
  expect(walk({ edge: "s-b" }, "down")).toEqual({ edge: "s-b" });
  expect(walk({ node: "a" }, "down")).toEqual({ node: "b" });
  expect(walk({ node: "o" }, "right").node).toBe("o");
});

it("begins at the left", () => {
  expect(walk({}, "right")).toEqual({ node: "s" });
});
