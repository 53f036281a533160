import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import type { Row } from "../api/types";
import { Follower, MOST_ROWS } from "./following";
import { rowsAfter, withoutOverlap } from "./overlap";

class FakeSocket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;
  closed = false;
  close() {
    this.closed = true;
  }
  gives(rows: Row[], dropped = 0) {
    this.onmessage?.({ data: JSON.stringify({ rows, dropped }) });
  }
}

const rows = (from: number, to: number): Row[] => Array.from({ length: to - from }, (_, at) => ({ n: from + at }));

describe("Follower", () => {
  let sockets: FakeSocket[];
  const latest = () => sockets[sockets.length - 1] as FakeSocket;
  const following = (earlier: Row[]) =>
    new Follower(
      "alerts",
      () => {
        sockets.push(new FakeSocket());
        return latest() as unknown as WebSocket;
      },
      () => Promise.resolve(earlier),
    );
  beforeEach(() => {
    vi.useFakeTimers();
    sockets = [];
  });
  afterEach(() => vi.useRealTimers());

  it("shows earlier rows first and each row once", async () => {
    const follower = following(rows(0, 5));
    follower.start();
    latest().onopen?.();
    latest().gives(rows(3, 7));
    await vi.advanceTimersByTimeAsync(300);
    latest().gives(rows(7, 8));
    await vi.advanceTimersByTimeAsync(300);
    expect(follower.snapshot().rows.map(([n]) => n)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    follower.stop();
  });

  it("keeps a bounded number of rows, counts the others, and tells what the server left out", async () => {
    const follower = following([]);
    follower.start();
    latest().onopen?.();
    await vi.advanceTimersByTimeAsync(300);
    latest().gives(rows(0, MOST_ROWS));
    latest().gives(rows(MOST_ROWS, MOST_ROWS + 10), 99);
    await vi.advanceTimersByTimeAsync(300);
    expect(follower.snapshot()).toMatchObject({ forgotten: 10, dropped: 99, state: "live" });
    expect(follower.snapshot().rows).toHaveLength(MOST_ROWS);
    follower.stop();
  });

  it("fetches the rows of the time without a connection, or says that some may be missing", async () => {
    const earlier = rows(0, 2);
    const follower = following(earlier);
    follower.start();
    latest().onopen?.();
    await vi.advanceTimersByTimeAsync(300);
    const lose = async (now: Row[]) => {
      earlier.splice(0, earlier.length, ...now);
      latest().onclose?.();
      await vi.advanceTimersByTimeAsync(2000);
      latest().onopen?.();
      await vi.advanceTimersByTimeAsync(300);
    };
    await lose(rows(0, 5));
    expect(follower.snapshot()).toMatchObject({ rows: [[0], [1], [2], [3], [4]], gap: false });
    await lose(rows(8, 9));
    expect(follower.snapshot()).toMatchObject({ rows: [[0], [1], [2], [3], [4], [8]], gap: true });
    follower.stop();
  });

  it("keeps rows of a new connection when an answer for the lost one comes late", async () => {
    const answers: ((rows: Row[]) => void)[] = [];
    const follower = new Follower(
      "alerts",
      () => {
        sockets.push(new FakeSocket());
        return latest() as unknown as WebSocket;
      },
      () => new Promise((answer) => answers.push(answer)),
    );
    follower.start();
    latest().onopen?.();
    latest().onclose?.();
    await vi.advanceTimersByTimeAsync(2000);
    latest().onopen?.();
    latest().gives(rows(1, 3));
    answers[0]?.([]);
    await vi.advanceTimersByTimeAsync(300);
    latest().gives(rows(3, 4));
    answers[1]?.(rows(0, 2));
    await vi.advanceTimersByTimeAsync(300);
    expect(follower.snapshot().rows).toEqual([[0], [1], [2], [3]]);
    follower.stop();
  });

  it("does not ask again by itself for what the server has refused", async () => {
    const follower = following([]);
    follower.start();
    latest().onmessage?.({ data: JSON.stringify({ problem: { type: "", title: "", status: 404, detail: "no output alerts", code: "UNKNOWN_OUTPUT" } }) });
    latest().onclose?.();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(follower.snapshot().state).toBe("ended");
    expect(sockets).toHaveLength(1);
    follower.again();
    expect(sockets).toHaveLength(2);
    follower.stop();
  });

  it("reconnects when the connection is lost, and not when it was stopped", async () => {
    const follower = following([]);
    follower.start();
    latest().onclose?.();
    await vi.advanceTimersByTimeAsync(300);
    expect(follower.snapshot().state).toBe("lost");
    await vi.advanceTimersByTimeAsync(2000);
    expect(sockets).toHaveLength(2);
    follower.stop();
    latest().onclose?.();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(sockets).toHaveLength(2);
    expect(latest().closed).toBe(true);
  });
});

describe("withoutOverlap", () => {
  it.each([
    [rows(0, 3), rows(3, 5), rows(3, 5)],
    [rows(0, 3), rows(1, 5), rows(3, 5)],
    [rows(0, 3), rows(0, 3), []],
    [[], rows(0, 2), rows(0, 2)],
    [rows(0, 9), [], []],
  ])("%j then %j adds %j", (before, live, added) => expect(withoutOverlap(before, live)).toEqual(added));
});

describe("rowsAfter", () => {
  it.each([
    [rows(0, 3), rows(1, 5), rows(3, 5)],
    [rows(2, 3), rows(0, 5), rows(3, 5)],
    [rows(0, 9), rows(3, 9), []],
    [rows(0, 3), rows(4, 5), null],
    [rows(0, 3), [], null],
    [[], rows(0, 2), null],
  ])("%j, and later %j", (known, again, missed) => expect(rowsAfter(known, again)).toEqual(missed));
});
