/** Outputs that this page follows: rows come by a WebSocket each and are kept up to a limit. */

import { useEffect, useMemo, useSyncExternalStore } from "react";
import { create } from "zustand";

import { api, openSocket, ProblemError } from "../api/client";
import type { Problem, Row } from "../api/types";
import { append, EMPTY_BUFFER, HIDDEN, rowObject, type RowBuffer } from "../watch/rows";
import { rowsAfter, withoutOverlap } from "./overlap";

/** So many rows of an output are kept in the page; older ones are counted and dropped. */
export const MOST_ROWS = 5000;
const RETRY_MS = 2000;
/** Rows that came are shown at most so often. */
const SHOW_MS = 250;
/** So many rows that came before are shown first. */
const EARLIER = 1000;

/** The latest rows of an output that nobody has taken; none if it does not keep them. */
async function latestRows(output: string): Promise<Row[]> {
  try {
    const { fields, rows } = await api.sample(output, EARLIER);
    const shown = fields.filter((field) => !HIDDEN.has(field.name)).map((field) => field.name);
    return rows.map((row) => {
      const all = rowObject(fields, row);
      return Object.fromEntries(shown.map((name) => [name, all[name] ?? null]));
    });
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return [];
  }
}

export type Followed = RowBuffer & {
  /** `lost` is tried again by itself; `ended` only when asked to: the server has said why not. */
  state: "connecting" | "live" | "lost" | "ended";
  problem: Problem | null;
  /** After a loss of the connection it is not known whether all rows are here. */
  gap: boolean;
};
type FollowMessage = { rows?: Row[]; dropped?: number; type?: string; problem?: Problem };

/** Which output the results panel shows. */
export const useFollowing = create<{ output: string | null }>()(() => ({ output: null }));

export function follow(output: string | null): void {
  useFollowing.setState({ output });
}

/** Follows one output from `start` to `stop`; `subscribe` and `snapshot` serve React. */
export class Follower {
  private buffer: Followed = { ...EMPTY_BUFFER, state: "connecting", problem: null, gap: false };
  private shown: Followed = this.buffer;
  private listeners = new Set<() => void>();
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private running = false;
  /** Rows that came live while the earlier ones are asked for; null afterwards. */
  private pending: Row[] | null = null;

  constructor(
    private readonly output: string,
    private readonly open: (path: string) => WebSocket = openSocket,
    private readonly earlier: (output: string) => Promise<Row[]> = latestRows,
  ) {}

  start = (): (() => void) => {
    this.running = true;
    this.connect();
    return this.stop;
  };

  stop = (): void => {
    this.running = false;
    clearTimeout(this.timer);
    clearTimeout(this.retry);
    this.timer = undefined;
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  };

  /** Connect anew after the server has refused. */
  again = (): void => {
    if (!this.running || this.buffer.state !== "ended") return;
    this.change({ ...this.buffer, state: "connecting", problem: null });
    this.connect();
  };

  clear = (): void => this.change({ ...this.buffer, ...EMPTY_BUFFER, gap: false });
  snapshot = (): Followed => this.shown;
  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private connect(): void {
    const socket = this.open(`outputs/${encodeURIComponent(this.output)}/live`);
    this.socket = socket;
    socket.onopen = () => {
      this.change({ ...this.buffer, state: "live" });
      void this.begin(socket);
    };
    socket.onmessage = (event: MessageEvent) => {
      if (this.socket !== socket) return;
      const message = JSON.parse(String(event.data)) as FollowMessage;
      if (message.problem) return this.change({ ...this.buffer, problem: message.problem });
      const rows = message.rows ?? [];
      if (this.pending) this.pending.push(...rows);
      const grown = append(this.buffer, this.pending ? [] : rows, message.dropped ?? 0, MOST_ROWS);
      this.change({ ...this.buffer, ...grown, state: "live", problem: null });
    };
    socket.onclose = () => {
      if (this.socket !== socket || !this.running) return;
      this.change({ ...this.buffer, state: this.buffer.problem ? "ended" : "lost" });
      if (this.buffer.problem) return; // there is no such output; asking again does not help
      this.retry = setTimeout(() => this.connect(), RETRY_MS);
    };
  }

  /** Show the rows from before first, or those of the time without a connection; each is shown once. */
  private async begin(socket: WebSocket): Promise<void> {
    const live: Row[] = [];
    this.pending = live;
    const before = await this.earlier(this.output);
    // After a reconnection `pending` is that of the newer connection.
    if (this.socket !== socket) return;
    this.pending = null;
    const known = this.buffer.rows.map((row) => Object.fromEntries(this.buffer.names.map((name, at) => [name, row[at] ?? null])));
    const missed = rowsAfter(known, before);
    const gap = this.buffer.gap || (known.length > 0 && missed === null);
    const rows = [...(missed ?? before), ...withoutOverlap(before, live)];
    this.change({ ...this.buffer, ...append(this.buffer, rows, 0, MOST_ROWS), gap });
  }

  /** Take the change at once, tell React at most a few times a second. */
  private change(buffer: Followed): void {
    this.buffer = buffer;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.shown = this.buffer;
      for (const listener of this.listeners) listener();
    }, SHOW_MS);
  }
}

/** The rows of an output since this component began to follow it. */
export function useFollower(output: string): Followed & { clear: () => void; again: () => void } {
  const follower = useMemo(() => new Follower(output), [output]);
  useEffect(() => follower.start(), [follower]);
  const found = useSyncExternalStore(follower.subscribe, follower.snapshot);
  return { ...found, clear: follower.clear, again: follower.again };
}
