import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { api, ProblemError } from "../api/client";
import type { Layout, ServerInfo } from "../api/types";
import { loadDraft, useDraft } from "./draft";
import { layoutChange, saveLayoutSoon } from "./savedLayout";
import { useSession } from "./session";

const layout = (positions: Layout["positions"], change: Partial<Layout> = {}): Layout => ({ positions, open: {}, bookmarks: [], ...change });

beforeEach(() => {
  vi.useFakeTimers();
  useSession.setState({ server: { role: "editor" } as ServerInfo });
  useDraft.setState({ loaded: true, layout: layout({}), savedLayout: layout({}), placed: {} });
});
afterEach(async () => {
  await vi.runAllTimersAsync();
  vi.restoreAllMocks();
});

it("sends what has changed and nothing else", () => {
  const before = layout({ a: [1, 1], b: [2, 2], c: [3, 3] }, { open: { g: true }, bookmarks: [] });
  const after = layout({ a: [1, 1], b: [5, 5], d: [4, 4] }, { open: {}, bookmarks: [{ name: "all", x: 0, y: 0, zoom: 1 }] });
  const found = layoutChange(before, after, { d: after.positions.d as [number, number] });
  expect(found).toEqual({ positions: { b: [5, 5], c: null }, placed: { d: [4, 4] }, open: { g: null }, bookmarks: after.bookmarks });
  expect(layoutChange(before, before, {})).toBeNull();
});

it("saves nothing for opening a network, and the automatic places with the first move", async () => {
  const send = vi.spyOn(api, "changeLayout").mockResolvedValue(null);
  const { setLayout } = useDraft.getState();
  setLayout({ positions: { a: [0, 0], b: [9, 9] } }, { automatic: true });
  await vi.advanceTimersByTimeAsync(700);
  expect(send).not.toHaveBeenCalled();
  setLayout({ positions: { ...useDraft.getState().layout.positions, a: [7, 7] } }, { history: true });
  await vi.advanceTimersByTimeAsync(700);
  expect(send).toHaveBeenCalledExactlyOnceWith({ positions: { a: [7, 7] }, placed: { b: [9, 9] }, open: {}, bookmarks: null }, false);
});

it("sends again what could not be saved, and at once when the page goes", async () => {
  const gone = new ProblemError({ type: "", title: "", status: 0, code: "UNREACHABLE", detail: "" });
  const send = vi.spyOn(api, "changeLayout").mockRejectedValueOnce(gone).mockResolvedValue(null);
  const { setLayout } = useDraft.getState();
  setLayout({ positions: { a: [7, 7] } });
  await vi.advanceTimersByTimeAsync(700);
  saveLayoutSoon();
  await vi.advanceTimersByTimeAsync(700);
  expect(send).toHaveBeenCalledTimes(2);
  expect(useDraft.getState().savedLayout.positions).toEqual({ a: [7, 7] });
  setLayout({ positions: { a: [8, 8] } });
  window.dispatchEvent(new Event("pagehide"));
  expect(send).toHaveBeenLastCalledWith(expect.objectContaining({ positions: { a: [8, 8] } }), true);
});

it("keeps bookmarks of a viewer in the browser, beside those that the server has", async () => {
  const shared = { name: "all", x: 0, y: 0, zoom: 1 };
  const own = { name: "mine", x: 5, y: 5, zoom: 2 };
  const send = vi.spyOn(api, "changeLayout").mockResolvedValue(null);
  vi.spyOn(api, "network").mockResolvedValue({ network: { network: "plant" }, version: "1" });
  vi.spyOn(api, "layout").mockResolvedValue(layout({}, { bookmarks: [shared] }));
  vi.spyOn(api, "check").mockResolvedValue({ ok: true, problems: [], cautions: [], arcs: {}, queries: {} });
  useSession.setState({ server: { role: "viewer" } as ServerInfo });
  await loadDraft();
  useDraft.getState().setLayout({ bookmarks: [shared, own] });
  await vi.advanceTimersByTimeAsync(700);
  expect(send).not.toHaveBeenCalled();
  await loadDraft();
  expect(useDraft.getState().layout.bookmarks).toEqual([shared, own]);
  useDraft.getState().setLayout({ bookmarks: [shared] });
  await vi.advanceTimersByTimeAsync(700);
  await loadDraft();
  expect(useDraft.getState().layout.bookmarks).toEqual([shared]);
});
