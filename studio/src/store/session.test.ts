import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { api, ProblemError } from "../api/client";
import type { PaletteEntry, ServerInfo } from "../api/types";
import { startSession, useSession } from "./session";

const busy = new ProblemError({ type: "", title: "", status: 503, code: "BUSY", detail: "the server is busy" });
const entry = { kind: "filter", section: "boxes" } as PaletteEntry;

beforeEach(() => {
  vi.useFakeTimers();
  useSession.setState({ palette: [], functions: [], starters: [], schema: {} });
  vi.spyOn(api, "server").mockResolvedValue({ role: "editor" } as ServerInfo);
  vi.spyOn(api, "schema").mockResolvedValue({ a: 1 });
  vi.spyOn(api, "functions").mockResolvedValue([]);
  vi.spyOn(api, "starters").mockResolvedValue([]);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it("asks for the palette again until the server gives it, and only for what is missing", async () => {
  const palette = vi.spyOn(api, "palette").mockRejectedValueOnce(busy).mockRejectedValueOnce(busy).mockResolvedValue([entry]);
  await startSession();
  await vi.advanceTimersByTimeAsync(0);
  expect(useSession.getState()).toMatchObject({ palette: [], schema: { a: 1 } });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(useSession.getState().palette).toEqual([entry]);
  expect(palette).toHaveBeenCalledTimes(3);
  expect(api.schema).toHaveBeenCalledTimes(1);
});

it("stops asking when the token is not taken any more", async () => {
  const palette = vi.spyOn(api, "palette").mockRejectedValue(busy);
  await startSession();
  await vi.advanceTimersByTimeAsync(0);
  useSession.setState({ phase: "token" });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(palette).toHaveBeenCalledTimes(1);
});
