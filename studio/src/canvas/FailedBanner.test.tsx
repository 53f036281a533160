import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";

import { emptyLive } from "../store/frames";
import { liveStore } from "../store/live";
import { useUi } from "../store/ui";
import { picture } from "../testing/picture";
import { FailedBanner } from "./FailedBanner";

afterEach(cleanup);

it("says why the engine has failed, and leads to the log", () => {
  liveStore.setState({ ...emptyLive, status: "live", picture: picture({ state: "failed", failure: "DISK_FULL: nothing can be written" }) });
  render(<FailedBanner />);
  expect(screen.getByRole("alert").textContent).toContain("DISK_FULL: nothing can be written");
  fireEvent.click(screen.getByRole("button", { name: "Log" }));
  expect(useUi.getState()).toMatchObject({ bottomOpen: true, bottomTab: "log" });
});

it("is not there while the engine runs", () => {
  liveStore.setState({ ...emptyLive, status: "live", picture: picture() });
  const { container } = render(<FailedBanner />);
  expect(container.textContent).toBe("");
});
