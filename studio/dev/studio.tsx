/** The whole studio without a server: studio.html?network=factory|lines|empty&lines=10&theme=dark#overload */

import { createRoot } from "react-dom/client";

import type { NetworkDocument, Picture } from "../src/api/types";
import { App } from "../src/App";
import { graphOf } from "../src/canvas/graph";
import { arcFigures, boxFigures, outputFigures } from "../src/testing/picture";
import { pretend } from "./fakeServer";

const factory: NetworkDocument = {
  network: "factory",
  streams: { readings: { schema: { machine: "string", at: "timestamp", celsius: "double" } }, pieces: { schema: { machine: "string", at: "timestamp", good: "int" } } },
  boxes: {
    watch: { box: "filter", input: "readings", routes: { scorching: "celsius > 97", bursting: "bar > 6.7" } },
    hot: { box: "map", input: "watch.scorching", keep: ["machine"] },
    tight: { box: "map", input: "watch.bursting", keep: ["machine"] },
    alarm: { box: "union", inputs: ["hot", "tight"] },
    heat: { box: "aggregate", input: "readings", window: { size: "5 seconds" }, order: { on: "at", by: ["machine"] } },
    made: { box: "aggregate", input: "pieces", window: { size: "5 seconds" }, order: { on: "at", by: ["machine"] } },
    shift: { box: "join", inputs: ["heat", "made"], on: "left.machine = right.machine" },
    quality: { box: "map", input: "shift", compute: { scrap_share: "scrap / good" } },
  },
  queries: { extremes: "SELECT machine, at, celsius FROM readings WHERE celsius > 101" },
  connection_points: { recent: { on: "readings", keep: "5 minutes", key: "machine" } },
  groups: { alarms: ["watch", "hot", "tight", "alarm"], production: ["heat", "made", "shift", "quality"] },
  outputs: {
    alerts: { from: "alarm", qos: { latency: [[0, 1], [1, 1], [5, 0]] } },
    means: { from: "heat", qos: { latency: [[0, 1], [5, 1], [30, 0]] } },
    quality: { from: "quality", qos: { latency: [[0, 1], [5, 1], [30, 0]] } },
  },
};

function lines(amount: number): NetworkDocument {
  const made: NetworkDocument = { network: "lines", streams: { readings: { schema: { machine: "string" } } }, boxes: {}, groups: {}, outputs: {} };
  for (let line = 0; line < amount; line += 1) {
    const names = ["own", "hot", "tens", "calm", "text"].map((kind) => `${kind}${line}`);
    names.forEach((name, at) => Object.assign(made.boxes ?? {}, { [name]: { box: at === 2 ? "aggregate" : "filter", input: names[at - 1] ?? "readings", where: "celsius > 60" } }));
    Object.assign(made.groups ?? {}, { [`line${line}`]: names });
    Object.assign(made.outputs ?? {}, { [`out${line}`]: { from: names[4] } });
  }
  return made;
}

const overload = location.hash.includes("overload");

/** Figures for whatever a network has. */
function figures(network: NetworkDocument, tick: number): Partial<Picture> {
  const graph = graphOf(network, null, []);
  const nodes = [...graph.nodes.values()];
  const recent = Array.from({ length: 60 }, (_, at) => 0.85 + 0.14 * Math.sin((tick + at * 2) / 17));
  const of = <T,>(kind: string, make: (name: string, at: number) => T): Record<string, T> =>
    Object.fromEntries(nodes.filter((node) => node.kind === kind).map((node, at) => [node.name, make(node.name, at)]));
  const streams = new Set(Object.keys(network.streams ?? {}));
  return {
    arcs: Object.fromEntries(nodes.flatMap((node) => node.outputs).map((port) => [port.arc, streams.has(port.arc) ? arcFigures({ rate: 12_400, queued: overload ? 19_100 : 980, oldest_s: overload ? 3 : 1.2 }) : arcFigures({ rate: 30, queued: port.arc === "shift" ? 5 : 0, oldest_s: 0.1 })])),
    boxes: of("box", (name, at) => boxFigures({ superbox: name, in_rate: 12_400, out_rate: 312.4, selectivity: 0.0252, cost_s: at % 3 ? 14.3e-3 : 0, held: at % 2 ? 5 : 1312, shed: overload && !at ? 143_000 : 0, late: at === 4 ? { closed: 42 } : {} })),
    outputs: of("output", (_, at) => outputFigures({ utility: at ? 1 : 0.69, latency_s: at ? 1.7 : 0.187, rate: 6 * at, recent_utility: recent, shed: overload && !at ? 12_300 : 0 })),
    points: of("point", () => ({ rows: 38_240, bytes: 3_400_000, oldest: null, attached: [] })),
    drops: overload ? [{ arc: "readings", superbox: "watch", rate: 1, interval: null, outputs: ["alerts"], since_us: 0, dropped: 12_300 }] : [],
    moves: overload ? [{ box: "quality", text: "passed past shift: it lets fewer tuples pass", past: "shift", place: "quality", target: "shift", tactic: "passed", side: "" }] : [],
  };
}

const asked = new URLSearchParams(location.search);
const name = asked.get("network") ?? "factory";
const network = name === "factory" ? factory : name === "lines" ? lines(Number(asked.get("lines") ?? 10)) : { network: "empty" };
pretend({ network, figures });
document.documentElement.dataset.theme = asked.get("theme") ?? "light";
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
