/** What frames of the live connection do to the state (pure). */

import type { Frame, Json, LogEntry, Picture, Problem, SampleOrder, StoryEntry, Table } from "../api/types";
import { completePicture } from "./complete";
import { mergePatch } from "./mergePatch";

export type LiveStatus = "idle" | "connecting" | "live" | "reconnecting";
export type Sample = { table: Table; problem: Problem | null };
/** By what a sample is kept: several of one arc may be wanted. */
export const sampleKey = ({ arc, limit, where }: SampleOrder): string => JSON.stringify([arc, limit, where]);

export type LiveState = {
  status: LiveStatus;
  /** Attempts since the connection was lost. */
  attempt: number;
  picture: Picture | null;
  /** What the server sent, while `picture` already shows the answer to a request; patches are made for it. */
  sent: Picture | null;
  /** The number of the latest picture frame; null until a whole picture has come. */
  seq: number | null;
  /** By `sampleKey`. */
  samples: Record<string, Sample>;
  stories: Record<string, StoryEntry[]>;
  log: LogEntry[];
  /** Log lines that were dropped because there were too many. */
  logDropped: number;
  problem: Problem | null;
};

const LOG_LINES = 2000;
const STORY_ENTRIES = 500;

export const emptyLive: LiveState = {
  status: "idle",
  attempt: 0,
  picture: null,
  sent: null,
  seq: null,
  samples: {},
  stories: {},
  log: [],
  logDropped: 0,
  problem: null,
};

/** The state after a frame; `resync` asks for a whole picture because a patch is missing. */
export function applyFrame(
  state: LiveState,
  frame: Frame,
): { change: Partial<LiveState>; resync: boolean } {
  switch (frame.type) {
    case "picture":
      return applyPicture(state, frame);
    case "sample": {
      const sample = { table: frame.table, problem: frame.error ?? null };
      return done({ samples: { ...state.samples, [sampleKey(frame)]: sample } });
    }
    case "story":
      return done({ stories: { ...state.stories, [frame.name]: frame.entries.slice(-STORY_ENTRIES) } });
    case "log": {
      // After a reconnection the server sends the lines that it still has once more.
      const last = state.log[state.log.length - 1]?.at_us ?? -1;
      const all = [...state.log, ...frame.entries.filter((entry) => entry.at_us > last)];
      const log = all.slice(-LOG_LINES);
      return done({ log, logDropped: state.logDropped + all.length - log.length });
    }
    case "error":
      return done({ problem: frame.problem });
    default:
      return done({});
  }
}

const done = (change: Partial<LiveState>) => ({ change, resync: false });

function applyPicture(state: LiveState, frame: Frame & { type: "picture" }) {
  if (frame.whole) return done({ picture: completePicture(frame.picture), sent: null, seq: frame.seq });
  // A patch is made for the frame that this client was sent before, so numbers may have gaps.
  if (state.seq === null || state.picture === null) return { change: {}, resync: true };
  if (frame.seq <= state.seq) return { change: { seq: null }, resync: true };
  const picture = mergePatch((state.sent ?? state.picture) as unknown as Json, frame.patch) as unknown as Picture;
  return done({ picture: completePicture(picture), sent: null, seq: frame.seq });
}
