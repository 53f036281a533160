import { render, screen } from "@testing-library/react";
import { Suspense } from "react";
import { expect, it, vi } from "vitest";

import { Boundary } from "./Boundary";
import { onDemand } from "./onDemand";

it("loads anew what could not be loaded", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  const load = vi
    .fn<() => Promise<() => string>>()
    .mockRejectedValueOnce(new Error("the network is gone"))
    .mockResolvedValue(() => "the panel");
  const Panel = onDemand(load);
  render(
    <Boundary label="panel">
      <Suspense fallback={null}>
        <Panel />
      </Suspense>
    </Boundary>,
  );
  expect(await screen.findByText("the panel", {}, { timeout: 4000 })).toBeTruthy();
  expect(load).toHaveBeenCalledTimes(2);
});
