import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import type { Frame } from "../api/types";
import { LiveConnection } from "./connection";
import type { LiveStatus } from "./frames";

class FakeSocket {
  readyState = 0;
  sent: string[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;
  send(text: string) {
    this.sent.push(text);
  }
  close() {
    this.readyState = 3;
    this.onclose?.();
  }
  opened() {
    this.readyState = 1;
    this.onopen?.();
  }
  says(frame: unknown) {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
}

describe("LiveConnection", () => {
  let sockets: FakeSocket[];
  let statuses: LiveStatus[];
  let frames: Frame[];
  let unopened: number;
  let connection: LiveConnection;
  const latest = () => sockets[sockets.length - 1] as FakeSocket;

  beforeEach(() => {
    vi.useFakeTimers();
    sockets = [];
    statuses = [];
    frames = [];
    unopened = 0;
    connection = new LiveConnection(
      () => {
        sockets.push(new FakeSocket());
        return latest() as unknown as WebSocket;
      },
      { frame: (frame) => frames.push(frame), status: (status) => statuses.push(status), unopened: () => (unopened += 1) },
    );
  });
  afterEach(() => {
    connection.stop();
    vi.useRealTimers();
  });

  it("sends the newest subscription when it opens, and only changes afterwards", () => {
    connection.want({ picture: true });
    connection.want({ picture: true, stories: ["hot"] });
    connection.start();
    latest().opened();
    connection.want({ picture: true, stories: ["hot"] });
    expect(latest().sent).toEqual(['{"picture":true,"stories":["hot"]}']);
    connection.resync();
    expect(latest().sent.slice(1)).toEqual(['{"picture":false,"stories":["hot"]}', '{"picture":true,"stories":["hot"]}']);
  });

  it("reconnects with growing delays and subscribes again", () => {
    connection.want({ picture: true });
    connection.start();
    latest().opened();
    latest().says({ type: "log", entries: [] });
    expect(statuses.at(-1)).toBe("live");
    latest().close();
    expect(statuses.at(-1)).toBe("reconnecting");
    vi.advanceTimersByTime(700);
    expect(sockets).toHaveLength(2);
    latest().close();
    vi.advanceTimersByTime(700);
    expect(sockets).toHaveLength(2);
    vi.advanceTimersByTime(700);
    expect(sockets).toHaveLength(3);
    latest().opened();
    expect(latest().sent).toEqual(['{"picture":true}']);
  });

  it("tells a connection that was refused from one that was lost", () => {
    connection.start();
    latest().opened();
    latest().close();
    expect(unopened).toBe(0);
    vi.advanceTimersByTime(700);
    latest().close();
    expect(unopened).toBe(1);
  });

  it("takes a connection that says nothing for lost", () => {
    connection.want({ picture: true });
    connection.start();
    latest().opened();
    vi.advanceTimersByTime(12_000);
    expect(statuses.at(-1)).toBe("reconnecting");
    vi.advanceTimersByTime(700);
    expect(sockets).toHaveLength(2);
  });

  it("does not mind silence while no picture is wanted", () => {
    connection.want({ picture: false });
    connection.start();
    latest().opened();
    vi.advanceTimersByTime(60_000);
    expect(sockets).toHaveLength(1);
  });

  it("stays closed once stopped", () => {
    connection.start();
    latest().opened();
    connection.stop();
    vi.advanceTimersByTime(60_000);
    expect(sockets).toHaveLength(1);
    expect(statuses.at(-1)).toBe("idle");
  });
});
