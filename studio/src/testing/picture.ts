/** A picture for tests. */

import type { ArcFigures, BoxFigures, OutputFigures, Picture } from "../api/types";

export const arcFigures = (change: Partial<ArcFigures> = {}): ArcFigures => ({
  tuples: 1000,
  rate: 200,
  queued: 0,
  oldest_s: null,
  patience_s: 2,
  pressed: {},
  mark: {},
  ...change,
});

export const boxFigures = (change: Partial<BoxFigures> = {}): BoxFigures => ({
  in_rate: 2000,
  out_rate: 20,
  selectivity: 0.01,
  cost_s: 3.2e-6,
  call_s: 0.03,
  calls: 12,
  held: null,
  late: {},
  dead: 0,
  shed: 0,
  superbox: "hot",
  priority: null,
  halted: null,
  ...change,
});

export const outputFigures = (change: Partial<OutputFigures> = {}): OutputFigures => ({
  out: 100,
  rate: 20,
  waiting: 0,
  lag_s: null,
  utility: 0.93,
  latency_s: 0.4,
  latency_p95_s: 0.9,
  loss: null,
  value: null,
  good_zone: true,
  shed: 0,
  failed: null,
  recent_utility: [1, null, 0.9],
  qos: null,
  ...change,
});

export const picture = (change: Partial<Picture> = {}): Picture => ({
  at_us: 1_000_000_000,
  network: "v1",
  state: "running",
  failure: null,
  rate: 2000,
  utility: 0.93,
  steps: 12,
  step_s: 0.03,
  late: 0,
  dead: 0,
  shed: 0,
  memory_bytes: null,
  arcs: { readings: arcFigures() },
  boxes: { hot: boxFigures() },
  outputs: { alerts: outputFigures() },
  points: {},
  queries: {},
  attachments: {},
  drops: [],
  moves: [],
  scheduler: { scheduler: "qos", reasons: [] },
  debug: { paused: false, applications: [], hit: null, breakpoints: [], trace: [] },
  ...change,
});
