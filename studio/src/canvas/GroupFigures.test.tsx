import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import type { NetworkDocument } from "../api/types";
import { emptyLive } from "../store/frames";
import { liveStore } from "../store/live";
import { boxFigures, outputFigures, picture } from "../testing/picture";
import { QueryFigures } from "../watch/QueryFigures";
import { graphOf } from "./graph";
import { GroupFigures } from "./GroupFigures";
import { groupingOf } from "./grouping";
import { useModel } from "./model";

const plant: NetworkDocument = {
  network: "plant",
  streams: { readings: { schema: { a: "int" } } },
  boxes: { hot: { box: "filter", input: "readings", where: "a > 1" }, crowd: { box: "crowding", input: "hot" } },
  groups: { heat: ["hot", "crowd"], all: ["heat"] },
  outputs: { alerts: { from: "hot" }, rest: { from: "hot.rest" } },
};

afterEach(cleanup);

it("says in a closed group what is wrong inside, also in an instance of a superbox", () => {
  const graph = graphOf(plant, null, []);
  useModel.setState({ graph, grouping: groupingOf(plant, graph) });
  const boxes = { hot: boxFigures({ in_rate: 30, dead: 2 }), "crowd/over": boxFigures({ in_rate: 10, halted: "no disk" }), other: boxFigures({ dead: 40 }) };
  liveStore.setState({ ...emptyLive, status: "live", picture: picture({ boxes }) });
  render(<GroupFigures id="group:all" />);
  expect(screen.getByText("40/s")).toBeTruthy();
  expect(screen.getByText("2 dead")).toBeTruthy();
  expect(screen.getByText("■ halted").title).toBe("no disk");
});

it("says in a closed group the least utility of its outputs, and that one has failed", () => {
  const graph = graphOf(plant, null, []);
  const grouping = groupingOf(plant, graph);
  useModel.setState({ graph, grouping: { ...grouping, parent: new Map([...grouping.parent, ["output:alerts", "group:heat"], ["output:rest", "group:heat"]]) } });
  const outputs = { alerts: outputFigures({ utility: 0.9 }), rest: outputFigures({ utility: 0.31 }) };
  liveStore.setState({ ...emptyLive, status: "live", picture: picture({ outputs }) });
  const { unmount } = render(<GroupFigures id="group:heat" />);
  expect(screen.getByText(/0.31/).className).toContain("tone-red");
  unmount();
  liveStore.setState({ picture: picture({ outputs: { ...outputs, alerts: outputFigures({ failed: "disk full" }) } }) });
  render(<GroupFigures id="group:heat" />);
  expect(screen.getByText("failed").className).toContain("tone-red");
});

it("says how many rows a query has given, or that it has failed", () => {
  liveStore.setState({ ...emptyLive, status: "live", picture: picture({ queries: { q: { matches: 24, shared: true, failed: null }, bad: { matches: 1, shared: true, failed: "division by zero" } } }) });
  render(
    <>
      <QueryFigures name="q" />
      <QueryFigures name="bad" />
    </>,
  );
  expect(screen.getByText("24 rows")).toBeTruthy();
  expect(screen.getByText("■ failed").title).toBe("division by zero");
});
