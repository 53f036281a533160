import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";

import { Boundary } from "./Boundary";

afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it("contains a failure and tries again", () => {
  vi.useFakeTimers();
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  let broken = true;
  const Part = () => {
    if (broken) throw new Error("no figure");
    return <p>a figure</p>;
  };
  render(
    <>
      <p>the rest</p>
      <Boundary label="gauge">
        <Part />
      </Boundary>
    </>,
  );
  expect(screen.queryByText("the rest")).not.toBeNull();
  expect(screen.queryByText("The gauge could not be shown.")).not.toBeNull();
  broken = false;
  act(() => vi.advanceTimersByTime(2000));
  expect(screen.queryByText("a figure")).not.toBeNull();
});
