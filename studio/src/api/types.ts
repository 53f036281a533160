/** What the server says and takes, as plain data. The server's OpenAPI document has the same. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Row = Record<string, Json>;

// ── the network, as its file has it ──

export type Declaration = { [key: string]: Json | undefined };
export type Section =
  | "streams"
  | "tables"
  | "superboxes"
  | "boxes"
  | "queries"
  | "functions"
  | "connection_points"
  | "views"
  | "groups"
  | "outputs";
export type NetworkDocument = {
  network: string;
  engine?: Declaration;
} & { [section in Section]?: Record<string, Declaration | string | string[]> };

export type Field = { name: string; type: string };
export type ArcInfo = { fields: Field[]; progress: string[] };

/** An RFC 9457 problem; `code` is one of Auroral's error codes. */
export type Problem = {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  where?: string;
  hint?: string;
  /** Where in the document it is, such as ["boxes", "hot", "where"]. */
  path?: (string | number)[];
};

export type CheckReport = {
  ok: boolean;
  problems: Problem[];
  cautions: { code: string; message: string; where: string }[];
  /** Every arc that could be typed, even if others could not. */
  arcs: Record<string, ArcInfo>;
  /** Fields of continuous queries' results. */
  queries: Record<string, Field[]>;
};

/** What a change does, or would do. */
export type ChangeReport = {
  added: string[];
  removed: string[];
  rebuilt: string[];
  kept: string[];
  drained: string[];
  reset: string[];
};

export type Layout = {
  positions: Record<string, [number, number]>;
  open: Record<string, boolean>;
  /** `group`: the group that was shown alone. */
  bookmarks: { name: string; x: number; y: number; zoom: number; group?: string }[];
};

/** What one person has changed of the layout; null removes. */
export type LayoutChange = {
  positions: Record<string, [number, number] | null>;
  /** Places that nobody chose: kept only where there is none. */
  placed: Layout["positions"];
  open: Record<string, boolean | null>;
  bookmarks: Layout["bookmarks"] | null;
};

export type PaletteEntry = {
  kind: string;
  section: Section;
  /** One sentence: what it means. */
  summary: string;
  /** The parameter that a card shows. */
  telling: string;
  inputs: "none" | "one" | "two" | "many";
  ports: string[];
  /** Three tuples in and what comes out; computed by the reference interpreter. */
  example?: { network: NetworkDocument; in: Record<string, Row[]>; out: Row[] };
  /** A declaration to begin with. */
  starter: Declaration;
};

export type Starter = { name: string; title: string; description: string; network: NetworkDocument };

export type ServerInfo = {
  version: string;
  network: string;
  role: "viewer" | "operator" | "editor";
  started_at: string;
  master: string;
  durable: boolean;
  limits: { body_bytes: number; rows: number };
};

// ── rows ──

export type Table = { fields: Field[]; rows: Json[][]; truncated?: boolean };

// ── live: what the canvas shows, twice a second ──

export type ArcFigures = {
  /** Tuples in all, and per second. */
  tuples: number;
  rate: number;
  queued: number;
  oldest_s: number | null;
  /** The shortest delay that an output behind this arc can bear, by its graph. */
  patience_s: number | null;
  /** By reader, those whose oldest tuple has used at least half of the delay that outputs behind them can bear. */
  pressed: Record<string, Pressure>;
  mark: Record<string, Json>;
};
export type Pressure = { oldest_s: number; patience_s: number };
export type BoxFigures = {
  in_rate: number;
  out_rate: number;
  selectivity: number | null;
  cost_s: number | null;
  call_s: number | null;
  calls: number;
  held: number | null;
  late: Record<string, number>;
  dead: number;
  shed: number;
  superbox: string | null;
  priority: number | null;
  /** Set while it does nothing more, and why. */
  halted: string | null;
};
export type OutputFigures = {
  out: number;
  rate: number;
  waiting: number;
  lag_s: number | null;
  utility: number | null;
  latency_s: number | null;
  /** What 95 % of the delays did not exceed. */
  latency_p95_s: number | null;
  loss: number | null;
  value: number | null;
  good_zone: boolean | null;
  shed: number;
  failed: string | null;
  /** The latest minutes, one value per two seconds, newest last. */
  recent_utility: (number | null)[];
  /** The graphs that hold, also those that were set without a deployment. */
  qos: Declaration | null;
};
export type PointFigures = {
  rows: number;
  bytes: number;
  oldest: Json;
  attached: string[];
};
export type DropFigures = {
  arc: string;
  superbox: string;
  rate: number;
  interval: string | null;
  outputs: string[];
  since_us: number;
  dropped: number;
};
/** What the optimiser changed: `box` was declared at `place` and runs where `target` was, or its join at `target` drops for it. */
export type MoveFigures = {
  box: string;
  text: string;
  past: string;
  place: string;
  target: string;
  tactic: "passed" | "sifted" | "combined" | "narrowed";
  side: string;
};
export type Breakpoint = {
  id: string;
  arc: string;
  condition: string | null;
  enabled: boolean;
  hits: number;
};
export type DebugState = {
  paused: boolean;
  applications: string[];
  hit: { breakpoint: string; arc: string; moment: number; tuple: Row; at_us: number } | null;
  breakpoints: Breakpoint[];
  trace: TraceEntry[];
};
export type TraceRows = { rows: Row[]; truncated: number };
export type TraceEntry = {
  box: string;
  superbox: string;
  in: Record<string, TraceRows>;
  out: Record<string, TraceRows>;
  held: number | null;
  /** Some rows of each of its state tables, as they were after the step. */
  kept: Record<string, TraceRows>;
  late: Record<string, number>;
  seconds: number;
};

/** The whole picture. */
export type Picture = {
  at_us: number;
  /** The version (ETag) of the network that runs. */
  network: string;
  state: "running" | "paused" | "failed";
  failure: string | null;
  rate: number;
  utility: number | null;
  steps: number;
  step_s: number | null;
  late: number;
  dead: number;
  shed: number;
  memory_bytes: number | null;
  arcs: Record<string, ArcFigures>;
  boxes: Record<string, BoxFigures>;
  outputs: Record<string, OutputFigures>;
  points: Record<string, PointFigures>;
  queries: Record<string, { matches: number; shared: boolean; failed: string | null }>;
  attachments: Record<string, { point: string; query: string; caught_up: boolean }>;
  drops: DropFigures[];
  moves: MoveFigures[];
  scheduler: { scheduler: string; reasons: string[] };
  debug: DebugState;
};

/** Client → server on /api/v1/live. What is not named is not sent. */
export type SampleOrder = { arc: string; limit: number; where: string | null };
export type Subscription = {
  picture?: boolean;
  /** Arcs whose latest tuples are wanted, with an optional filter. */
  samples?: SampleOrder[];
  /** Names whose stories are followed. */
  stories?: string[];
};
export type StoryEntry = { at_us: number; about: string[]; event: string; why: string; count: number };
export type LogEntry = { at_us: number; level: string; text: string };

/** Server → client. A picture is a whole one first, then RFC 7396 merge patches. */
export type Frame =
  | { type: "picture"; seq: number; whole: true; picture: Picture }
  | { type: "picture"; seq: number; whole: false; patch: Json }
  | ({ type: "sample"; table: Table; error?: Problem } & SampleOrder)
  | { type: "story"; name: string; entries: StoryEntry[] }
  | { type: "log"; entries: LogEntry[] }
  | { type: "error"; problem: Problem };

/** GET /api/v1/history/{name}: the last fifteen minutes. */
export type History = { at_s: number[]; series: Record<string, (number | null)[]> };
