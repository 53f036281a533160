import { cleanup, render, screen, within } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import { useDebug } from "./actions";
import { TraceView } from "./TraceView";

afterEach(cleanup);

Element.prototype.scrollIntoView = () => undefined;

it("shows what went in, what came out, and what is kept", () => {
  const entry = {
    box: "tens",
    superbox: "tens",
    in: { readings: { rows: [{ celsius: 71 }], truncated: 0 } },
    out: {},
    held: 60,
    kept: { windows: { rows: [{ start: 10, machine: "press" }], truncated: 59 } },
    late: {},
    seconds: 0.01,
  };
  useDebug.setState({ trace: [entry], cursor: 0 });
  render(<TraceView />);
  expect(screen.getByText("71")).toBeTruthy();
  const kept = screen.getByTestId("trace-kept");
  expect(kept.textContent).toContain("kept 60 rows");
  expect(kept.textContent).toContain("60 rows, 1 shown");
  expect(within(kept).getByText("press")).toBeTruthy();
});
