/** One WebSocket that is opened again when it is lost, and a subscription that survives that. */

import type { Frame, Subscription } from "../api/types";
import type { LiveStatus } from "./frames";

const DELAYS_MS = [500, 1000, 2000, 4000, 8000, 15000];
/** A connection that has sent no picture for so long is taken for lost. */
const SILENCE_MS = 12_000;

type Listener = {
  frame: (frame: Frame) => void;
  status: (status: LiveStatus, attempt: number) => void;
  /** A connection was closed before it was open: the server is gone, or does not let us in. */
  unopened: () => void;
};

export class LiveConnection {
  private socket: WebSocket | null = null;
  private attempt = 0;
  private wanted: Subscription = {};
  private sent = "";
  private retry: ReturnType<typeof setTimeout> | undefined;
  private watchdog: ReturnType<typeof setTimeout> | undefined;
  private running = false;

  constructor(
    private readonly open: () => WebSocket,
    private readonly listener: Listener,
  ) {}

  start(): void {
    if (this.running) return;
    this.running = true;
    this.connect();
  }

  stop(): void {
    this.running = false;
    clearTimeout(this.retry);
    clearTimeout(this.watchdog);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.attempt = 0;
    this.listener.status("idle", 0);
  }

  /** Replace the subscription; it is sent if it differs from the one before. */
  want(subscription: Subscription): void {
    this.wanted = subscription;
    this.send(false);
  }

  /** Subscribe to the picture anew: the server begins with a whole one. */
  resync(): void {
    const { wanted } = this;
    this.wanted = { ...wanted, picture: false };
    this.send(true);
    this.wanted = wanted;
    this.send(true);
  }

  /** Connect at once instead of waiting for the next attempt. */
  hurry(): void {
    if (!this.running || this.socket) return;
    clearTimeout(this.retry);
    this.connect();
  }

  private connect(): void {
    this.listener.status(this.attempt ? "reconnecting" : "connecting", this.attempt);
    const socket = this.open();
    this.socket = socket;
    this.sent = "";
    let opened = false;
    socket.onopen = () => {
      opened = true;
      if (this.socket !== socket) return;
      this.send(true);
      this.watch();
    };
    socket.onmessage = (event: MessageEvent) => {
      if (this.socket !== socket) return;
      if (this.attempt || !this.sent) this.attempt = 0;
      this.listener.status("live", 0);
      this.watch();
      this.listener.frame(JSON.parse(String(event.data)) as Frame);
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.lost();
      if (!opened && this.running) this.listener.unopened();
    };
  }

  private lost(): void {
    clearTimeout(this.watchdog);
    this.socket = null;
    if (!this.running) return;
    const delay = DELAYS_MS[Math.min(this.attempt, DELAYS_MS.length - 1)] ?? 15000;
    this.attempt += 1;
    this.listener.status("reconnecting", this.attempt);
    this.retry = setTimeout(() => this.connect(), delay * (0.75 + Math.random() / 2));
  }

  private send(again: boolean): void {
    const text = JSON.stringify(this.wanted);
    if (!this.socket || this.socket.readyState !== 1 || (text === this.sent && !again)) return;
    this.sent = text;
    this.socket.send(text);
    this.watch();
  }

  private watch(): void {
    clearTimeout(this.watchdog);
    if (!this.wanted.picture) return;
    this.watchdog = setTimeout(() => {
      const socket = this.socket;
      this.lost();
      socket?.close();
    }, SILENCE_MS);
  }
}
