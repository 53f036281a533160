/** Pause, resume and step; used by buttons and by keyboard shortcuts. */

import { create } from "zustand";

import { api, ProblemError } from "../api/client";
import type { DebugState, TraceEntry } from "../api/types";
import { ownerOf } from "../draft/arcs";
import { liveStore } from "../store/live";
import { useUi } from "../store/ui";
import { isPaused } from "./paused";
import { report } from "./problem";

type DebugUi = {
  /** The output whose application is paused and stepped; null: all. */
  application: string | null;
  /** What the latest step did, in flow order. */
  trace: TraceEntry[];
  /** The entry of the trace that is shown. */
  cursor: number;
  /** The step was asked for with the keyboard: the trace takes the focus, so that arrow keys walk along it. */
  focusTrace: boolean;
  busy: boolean;
};

export const useDebug = create<DebugUi>()(() => ({
  application: null,
  trace: [],
  cursor: 0,
  focusTrace: false,
  busy: false,
}));

// After a reload the trace is that of the latest picture.
liveStore.subscribe((state, before) => {
  if (before.picture === null && state.picture?.debug.trace.length && !useDebug.getState().trace.length) useDebug.setState({ trace: state.picture.debug.trace });
});

export function chooseApplication(application: string | null): void {
  useDebug.setState({ application });
}

async function act(action: () => Promise<void>): Promise<void> {
  if (useDebug.getState().busy) return;
  useDebug.setState({ busy: true });
  try {
    await action();
    report(null);
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    report(error.problem);
  } finally {
    useDebug.setState({ busy: false });
  }
}

/** Show the state at once; the next picture, which may know of something later, takes its place. */
function show(debug: DebugState): void {
  const { picture, sent } = liveStore.getState();
  if (!picture || picture.state === "failed") return;
  const state = debug.paused ? "paused" : "running";
  liveStore.setState({ picture: { ...picture, debug, state }, sent: sent ?? picture });
}

export const pause = () =>
  act(async () => show(await api.pause(useDebug.getState().application)));

export const resume = () =>
  act(async () => show(await api.resume(useDebug.getState().application)));

export function togglePause(): Promise<void> {
  return isPaused(liveStore.getState().picture, useDebug.getState().application) ? resume() : pause();
}

/** Run the next train, or one tuple, through the boxes and open the trace; only while paused. */
export const step = (kind: "train" | "tuple") =>
  act(async () => {
    const { application } = useDebug.getState();
    const { trace, state } = await api.step(kind, application);
    show(state);
    useDebug.setState({ trace, cursor: 0 });
    useUi.getState().openBottom("debug");
    highlight(trace[0]);
  });

/** Step, and go on in the trace with the keyboard. */
export async function stepAndWalk(kind: "train" | "tuple"): Promise<void> {
  const before = useDebug.getState().trace;
  await step(kind);
  if (useDebug.getState().trace !== before) useDebug.setState({ focusTrace: true });
}

export const stepTrain = () => step("train");
export const stepTuple = () => step("tuple");

/** Show another entry of the trace and select its box on the canvas. */
export function walk(to: number): void {
  const { trace } = useDebug.getState();
  const cursor = Math.min(Math.max(to, 0), Math.max(trace.length - 1, 0));
  useDebug.setState({ cursor });
  highlight(trace[cursor]);
}

/** Select the box of an entry, or the instance that it is in; boxes that the engine made itself are not on the canvas. */
function highlight(entry: TraceEntry | undefined): void {
  if (!entry || entry.box.includes("@")) return;
  const name = ownerOf(entry.box);
  useUi.getState().select({ kind: "box", name });
  useUi.getState().ask({ kind: "center", node: name });
}
