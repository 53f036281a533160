import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { api, ProblemError } from "../api/client";
import type { ChangeReport, NetworkDocument } from "../api/types";
import { useDraft } from "../store/draft";
import { useUi } from "../store/ui";
import { DeployDialog } from "./DeployDialog";

const problem = (status: number, code: string) => new ProblemError({ type: "", title: "", status, code, detail: `because ${code}` });
const report: ChangeReport = { added: ["hot"], removed: [], rebuilt: [], kept: [], drained: [], reset: [] };
const draft: NetworkDocument = { network: "plant", streams: { s: { schema: "a int" } } };
const settle = () => act(async () => void (await new Promise((done) => setTimeout(done))));

beforeEach(() => {
  HTMLDialogElement.prototype.showModal = () => undefined;
  HTMLDialogElement.prototype.close = () => undefined;
  useUi.setState({ deployOpen: true });
  useDraft.setState({ loaded: true, draft, deployed: { network: "plant" }, version: "1", refusal: null, layout: { positions: { s: [0, 0] }, open: {}, bookmarks: [] } });
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

it("says why a draft is refused, and offers no other try", async () => {
  vi.spyOn(api, "preview").mockRejectedValue(problem(422, "CANNOT_CHANGE"));
  render(<DeployDialog />);
  await settle();
  expect(screen.getByRole("alert", { hidden: true }).textContent).toContain("because CANNOT_CHANGE");
  expect(screen.getByTestId<HTMLButtonElement>("deploy-confirm").disabled).toBe(true);
  expect(useDraft.getState().refusal?.code).toBe("CANNOT_CHANGE");
});

it("can be tried again when the server could not answer", async () => {
  vi.spyOn(api, "preview").mockRejectedValueOnce(problem(503, "BUSY")).mockResolvedValue(report);
  render(<DeployDialog />);
  await settle();
  fireEvent.click(screen.getByTestId("deploy-again"));
  await settle();
  expect(screen.getByTestId<HTMLButtonElement>("deploy-confirm").disabled).toBe(false);
});

it("takes a conflict with the draft itself as deployed: the answer to the first attempt was lost", async () => {
  vi.spyOn(api, "preview").mockResolvedValue(report);
  vi.spyOn(api, "deploy").mockRejectedValue(problem(412, "CHANGED_MEANWHILE"));
  vi.spyOn(api, "network").mockResolvedValue({ network: draft, version: "2" });
  render(<DeployDialog />);
  await settle();
  fireEvent.click(screen.getByTestId("deploy-confirm"));
  await settle();
  expect(useDraft.getState()).toMatchObject({ version: "2", outdated: false });
  expect(useUi.getState().deployOpen).toBe(false);
});
