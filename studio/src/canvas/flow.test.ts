import { expect, it } from "vitest";

import { useUi } from "../store/ui";
import { selectedEdges, useFlow, type FlowEdge } from "./flow";

const edge = (id: string, arc: string) => ({ id, source: "s", target: id, data: { edge: { arc } } }) as unknown as FlowEdge;

it("selects all edges of an arc that a panel has selected, and leaves the one that a person has chosen", () => {
  useFlow.setState({ nodes: [], edges: [edge("a", "readings"), edge("b", "readings"), edge("c", "other")] });
  useUi.getState().select({ kind: "arc", name: "readings" });
  expect(selectedEdges().map((each) => each.id)).toEqual(["a", "b"]);
  useUi.getState().select(null);
  useFlow.getState().changeEdges([{ type: "select", id: "b", selected: true }]);
  useUi.getState().select({ kind: "arc", name: "readings" });
  expect(selectedEdges().map((each) => each.id)).toEqual(["b"]);
});
