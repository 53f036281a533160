/** A server that makes its figures up, so that the watching side can be looked at alone. */

import type { Frame, Json, NetworkDocument, Picture, Subscription } from "../src/api/types";
import { arcFigures, boxFigures, outputFigures, picture } from "../src/testing/picture";

let network: NetworkDocument = {
  network: "plant",
  streams: { readings: { schema: { machine: "string", at: "timestamp", celsius: "double", bar: "double" } } },
  boxes: { watch: { box: "filter", input: "readings", where: "celsius > 97" }, tens: { box: "aggregate", input: "readings" } },
  connection_points: { recent: { on: "readings", keep: "2 hours", key: "machine" } },
  outputs: {
    alerts: { from: "watch", qos: { latency: [[0, 1], [2, 1], [10, 0]], loss: [[1, 1], [0.5, 0.8], [0, 0]], value: { on: "celsius", graph: [[60, 0.2], [100, 1]] } } },
    means: { from: "tens", qos: { latency: [[0, 1], [5, 1], [60, 0]] } },
  },
};
const fields = [
  { name: "_seq", type: "bigint" },
  { name: "_at", type: "timestamp" },
  { name: "machine", type: "string" },
  { name: "at", type: "timestamp" },
  { name: "celsius", type: "double" },
  { name: "bar", type: "double" },
];
let tick = 0;
const wave = (period: number, phase = 0) => Math.sin((tick + phase) / period);
const reading = (seq: number): Json[] => [
  seq,
  new Date(Date.now() - (200 - seq) * 40).toISOString(),
  ["press", "lathe", "mill"][seq % 3] ?? "press",
  new Date(Date.now() - (200 - seq) * 40).toISOString(),
  Number((70 + 20 * Math.sin(seq / 9) + (seq % 7)).toFixed(1)),
  Number((5 + Math.cos(seq / 5)).toFixed(2)),
];
const row = (seq: number) => Object.fromEntries(fields.slice(2).map((field, at) => [field.name, reading(seq)[at + 2]]));

let debug: Picture["debug"] = { paused: false, applications: [], hit: null, breakpoints: [{ id: "b1", arc: "watch", condition: "celsius > 99", enabled: true, hits: 3 }], trace: [] };
const overload = location.hash.includes("overload");

function now(): Picture {
  const recent = Array.from({ length: 60 }, (_, at) => 0.85 + 0.14 * Math.sin((tick + at * 2) / 17));
  const load = overload ? 1 : 0;
  return picture({
    at_us: Date.now() * 1000,
    state: debug.paused ? "paused" : "running",
    rate: 12_400 + 300 * wave(9),
    utility: overload ? 0.41 : 0.93,
    shed: load * 12_300,
    late: 42,
    dead: load * 3,
    memory_bytes: 34_000_000,
    arcs: {
      readings: arcFigures({ rate: 12_400 + 300 * wave(9), queued: load * 48_000, oldest_s: load * 3.2, patience_s: 2, pressed: load * 3.2 < 1 ? {} : { hot: { oldest_s: load * 3.2, patience_s: 2 } } }),
      watch: arcFigures({ rate: 120, queued: 12, oldest_s: 1.2 }),
      tens: arcFigures({ rate: 3 }),
    },
    boxes: {
      watch: boxFigures({ in_rate: 12_400, out_rate: 124 + 5 * wave(4), cost_s: 3.2e-6 }),
      tens: boxFigures({ in_rate: 12_400, out_rate: 3, held: 1312, late: { closed: 42 }, cost_s: 8e-6, selectivity: 0.0003 }),
    },
    outputs: {
      alerts: outputFigures({ utility: overload ? 0.31 : 0.98, latency_s: overload ? 6.3 : 0.42 + 0.1 * wave(5), rate: 124, recent_utility: recent, shed: load * 12_300 }),
      means: outputFigures({ utility: 0.71, latency_s: 14, rate: 3, recent_utility: recent.map((one) => one - 0.3) }),
    },
    points: { recent: { rows: 1_300_000, bytes: 48_000_000, oldest: "2026-01-01T08:00:00Z", attached: ["warm"] } },
    attachments: { warm: { point: "recent", query: "SELECT * FROM recent WHERE celsius > 80", caught_up: true } },
    drops: overload ? [{ arc: "readings", superbox: "watch", rate: 0.32, interval: null, outputs: ["alerts"], since_us: 0, dropped: 12_300 }] : [],
    moves: [],
    scheduler: { scheduler: "qos", reasons: ["a call costs 18 ms"] },
    debug,
  });
}

const palette = ["filter", "map", "union", "aggregate", "join"].map((kind) => ({ kind, section: "boxes", summary: `A ${kind}`, telling: "where", inputs: kind === "join" ? "two" : "one", ports: [], starter: { box: kind } }));
const rows = (numbers: number[]) => numbers.map((seq) => row(seq) as { [key: string]: Json });
const trace = () => [
  { box: "watch", superbox: "watch", in: { readings: { rows: rows([1, 2, 3]), truncated: 0 } }, out: { watch: { rows: rows([3]), truncated: 0 }, "watch.rest": { rows: rows([1, 2]), truncated: 0 } }, held: null, kept: {}, late: {}, seconds: 0.018 },
  { box: "tens", superbox: "tens", in: { readings: { rows: rows([1, 2, 3]), truncated: 240 } }, out: {}, held: 1312, kept: { windows: { rows: [{ start: "2026-01-01T08:00:00Z", machine: "press", "accumulator 1": 12 }], truncated: 1311 } }, late: { closed: 1 }, seconds: 0.031 },
];

function answer(path: string, method: string): unknown {
  const history = () => {
    const at_s = Array.from({ length: 450 }, (_, at) => Date.now() / 1000 - 900 + at * 2);
    const curve = (base: number, swing: number, period: number) => at_s.map((_, at) => base + swing * Math.sin(at / period));
    return { at_s, series: { utility: curve(0.8, 0.15, 40), rate: curve(124, 30, 20), in_rate: curve(12_000, 900, 30), out_rate: curve(120, 40, 20), latency_s: curve(0.5, 0.3, 25), latency_p95_s: curve(0.9, 0.3, 25), queued: curve(500, 400, 30), cost_s: curve(3e-6, 1e-6, 44) } };
  };
  if (path === "server") return { version: "0", network: "plant", role: "editor", started_at: "", master: "", durable: true, limits: { body_bytes: 1, rows: 1 } };
  if (path === "network") return network;
  if (path === "layout") return { positions: {}, open: {}, bookmarks: [] };
  if (path === "palette") return palette;
  if (path === "starters" || path === "functions") return [];
  if (path === "check") return { ok: true, problems: [], cautions: [], arcs: { readings: { fields: fields.slice(2), progress: ["at"] }, watch: { fields: fields.slice(2), progress: ["at"] } }, queries: {} };
  if (path.startsWith("history/")) return history();
  if (path.startsWith("entities/")) return { quality: { delivered: 900, shed: 100, history: Array.from({ length: 300 }, (_, at) => ({ ago_s: at, delay_s: Math.abs(1.5 + 1.4 * Math.sin(at) + (at % 13) / 4), delivered: 20, utility: 1 })) } };
  if (path.startsWith("points/") || path.startsWith("arcs/") || path === "sql") return { fields, rows: Array.from({ length: 1000 }, (_, at) => reading(at)), truncated: true };
  if (path === "attach") return { name: "warm" };
  if (path === "control/pause") return (debug = { ...debug, paused: true });
  if (path === "control/resume") return (debug = { ...debug, paused: false, hit: null });
  if (path === "control/step") return { trace: trace(), state: (debug = { ...debug, hit: { breakpoint: "b1", arc: "watch", moment: 42_133, tuple: rows([5])[0] ?? {}, at_us: Date.now() * 1000 } }) };
  return method === "GET" ? {} : null;
}

const stories = () =>
  ["ran", "waited", "shed", "moved"].map((event, at) => ({ at_us: (Date.now() - at * 7000) * 1000, about: ["watch"], event, why: ["round robin", "alerts had the steeper graph", "readings brings more than the engine can do", "before tens: it lets fewer tuples pass"][at] ?? "", count: at ? 1 : 12 }));

class FakeSocket extends EventTarget {
  readyState = 1;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;
  private timer: ReturnType<typeof setInterval>;
  private wanted: Subscription = {};
  private seq = 0;
  private from = 0;
  constructor(private readonly at: URL) {
    super();
    setTimeout(() => this.onopen?.(), 10);
    this.timer = setInterval(() => this.tell(), 500);
  }
  send(text: string) {
    this.wanted = JSON.parse(text) as Subscription;
    this.tell();
  }
  close() {
    clearInterval(this.timer);
  }
  private say(frame: Frame | { rows: unknown; dropped: number }) {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
  private tell() {
    tick += 1;
    if (this.at.pathname.includes("/outputs/")) {
      const amount = location.hash.includes("fast") ? 5000 : 25;
      this.say({ rows: rows(Array.from({ length: amount }, (_, at) => this.from + at)), dropped: 0 });
      this.from += amount;
      return;
    }
    if (this.wanted.picture) this.say({ type: "picture", seq: ++this.seq, whole: true, picture: { ...now(), ...figures?.(network, tick), debug } });
    for (const order of this.wanted.samples ?? [])
      this.say({ type: "sample", ...order, table: { fields, rows: Array.from({ length: 200 }, (_, at) => reading(tick * 3 + at)) } });
    for (const name of this.wanted.stories ?? []) this.say({ type: "story", name, entries: stories() });
    this.say({ type: "log", entries: tick % 4 ? [] : [{ at_us: Date.now() * 1000, level: tick % 8 ? "info" : "warning", text: `step ${tick} took 31 ms` }] });
  }
}

type Figures = (network: NetworkDocument, tick: number) => Partial<Picture>;
let figures: Figures | null = null;

/** Answer every request of this page; `given` takes the place of the small network. */
export function pretend(given?: { network: NetworkDocument; figures: Figures }): void {
  if (given) ({ network, figures } = given);
  window.fetch = (input, init) => {
    const path = String(input).replace(/^api\/v1\//, "").split("?")[0] ?? "";
    const body = JSON.stringify(answer(path, init?.method ?? "GET"));
    return Promise.resolve(new Response(body, { status: 200, headers: { ETag: "v1" } }));
  };
  window.WebSocket = FakeSocket as unknown as typeof WebSocket;
}
