/** Figures of boxes, arcs, outputs and points as text (pure). */

import type { ArcFigures, BoxFigures, OutputFigures, Picture, PointFigures, Pressure } from "../api/types";
import { bytes, count, duration, marks, NONE, plural, rate, share, utility } from "./format";

export type Tone = "calm" | "amber" | "red" | "idle";

export type BoxTexts = {
  in: string;
  out: string;
  passes: string;
  cost: string;
  held: string;
  late: string;
  dead: string;
  shed: string;
  halted: string;
  title: string;
};

const sum = (counts: Record<string, number>) =>
  Object.values(counts).reduce((all, one) => all + one, 0);

/** The figures of an instance of a superbox: what its arcs carry, and the sums of the boxes inside; null if none runs. */
export function instanceFigures(picture: Picture, name: string, inputs: readonly string[], outputs: readonly string[]): BoxFigures | null {
  const inside = Object.entries(picture.boxes).flatMap(([box, figures]) => (box.startsWith(`${name}/`) ? [figures] : []));
  if (!inside.length) return null;
  const rates = (arcs: readonly string[]) => arcs.reduce((all, arc) => all + (picture.arcs[arc]?.rate ?? 0), 0);
  const total = (pick: (box: BoxFigures) => number) => inside.reduce((all, box) => all + pick(box), 0);
  return {
    in_rate: rates(inputs),
    out_rate: rates(outputs),
    selectivity: null,
    cost_s: null,
    call_s: null,
    calls: 0,
    held: total((box) => box.held ?? 0),
    late: { inside: total((box) => sum(box.late)) },
    dead: total((box) => box.dead),
    shed: total((box) => box.shed),
    superbox: null,
    priority: null,
    halted: inside.find((box) => box.halted !== null)?.halted ?? null,
  };
}

/** What a card says of a box; an empty text is not shown. */
export function boxTexts(box: BoxFigures): BoxTexts {
  const late = sum(box.late);
  return {
    in: rate(box.in_rate),
    out: rate(box.out_rate),
    passes: box.selectivity === null ? "" : share(box.selectivity),
    // No work takes no time: such a cost has not been measured yet.
    cost: box.cost_s === null ? "" : box.cost_s === 0 ? NONE : duration(box.cost_s),
    held: box.held ? count(box.held) : "",
    late: late ? count(late) : "",
    dead: box.dead ? count(box.dead) : "",
    shed: box.shed ? count(box.shed) : "",
    halted: box.halted ?? "",
    title: [
      `${rate(box.in_rate)} in, ${rate(box.out_rate)} out`,
      box.selectivity === null ? "" : `${share(box.selectivity)} of what enters leaves`,
      !box.cost_s ? "" : `${duration(box.cost_s)} of work per tuple`,
      box.call_s === null ? "" : `${duration(box.call_s)} per call, ${plural(box.calls, "call")}`,
      box.held === null ? "" : `${plural(box.held, "row")} held`,
      late ? `${count(late)} late` : "",
      box.dead ? `${count(box.dead)} dead letters` : "",
      box.shed ? `${count(box.shed)} shed` : "",
      box.superbox ? `runs in superbox ${box.superbox}` : "",
    ]
      .filter(Boolean)
      .join("\n"),
  };
}

const used = ({ oldest_s, patience_s }: Pressure): number => (patience_s > 0 ? oldest_s / patience_s : Infinity);

/** The reader whose oldest tuple has used most of the time that outputs behind it can bear; of all, or of some entities. */
function pressing(arc: ArcFigures, readers?: readonly string[]): ({ reader: string } & Pressure) | null {
  // What reads inside of an instance of a superbox presses on the instance.
  const of = Object.entries(arc.pressed).filter(([reader]) => !readers || readers.includes(reader.split("/")[0] ?? reader));
  return of.reduce<({ reader: string } & Pressure) | null>((worst, [reader, one]) => (worst && used(worst) >= used(one) ? worst : { reader, ...one }), null);
}

/** How pressing the queue of an arc is: the age of the oldest tuple of each reader against what outputs behind it bear. */
export function arcTone(arc: ArcFigures, readers?: readonly string[]): Tone {
  const worst = arc.queued > 0 ? pressing(arc, readers) : null;
  if (worst) return used(worst) >= 1 ? "red" : "amber";
  return arc.rate > 0 || arc.queued > 0 ? "calm" : "idle";
}

/** Thickness in pixels: logarithmic in the rate, in steps of half a pixel. */
export function arcWidth(perSecond: number): number {
  const width = 1.5 + Math.log10(1 + Math.max(perSecond, 0)) * 1.1;
  return Math.min(Math.round(width * 2) / 2, 8);
}

/** What stands on an arc: its queue, and how long the oldest tuple has waited if that presses. */
export function arcLabel(arc: ArcFigures): { queue: string; age: string } {
  const worst = arc.queued ? pressing(arc) : null;
  return { queue: arc.queued ? count(arc.queued) : "", age: worst ? duration(worst.oldest_s) : "" };
}

/** How long the oldest tuple waits; if that presses, for whom, and how long outputs can bear it. */
function waited(arc: ArcFigures): string {
  if (!arc.queued || arc.oldest_s === null) return "";
  const worst = pressing(arc);
  if (!worst) return duration(arc.oldest_s);
  const bears = used(worst) >= 1 ? "waits longer than outputs can bear" : "has used half of the time that outputs can bear";
  return `${duration(worst.oldest_s)} of ${duration(worst.patience_s)}: the oldest tuple for ${worst.reader} ${bears}`;
}

/** What an arc carries; an empty text is not shown. */
export function arcFacts(arc: ArcFigures): { rate: string; queue: string; age: string; mark: string } {
  return {
    rate: `${rate(arc.rate)}, ${plural(arc.tuples, "tuple")} in all`,
    queue: arc.queued ? plural(arc.queued, "tuple") : "empty",
    age: waited(arc),
    mark: marks(arc.mark),
  };
}

export function arcTitle(name: string, arc: ArcFigures): string {
  return [
    `${name}: ${rate(arc.rate)}, ${plural(arc.tuples, "tuple")} in all`,
    arc.queued ? `${plural(arc.queued, "tuple")} queued` : "",
    waited(arc) && `oldest ${waited(arc)}`,
    Object.keys(arc.mark).length ? marks(arc.mark) : "",
  ]
    .filter(Boolean)
    .join("\n");
}

/** How an output does; shape and text go with the colour. */
export function outputTone(output: OutputFigures): Tone {
  if (output.failed) return "red";
  if (output.utility === null) return "idle";
  if (output.utility >= 0.8) return "calm";
  return output.utility >= 0.5 ? "amber" : "red";
}

export function outputTitle(name: string, output: OutputFigures): string {
  return [
    `${name}: utility ${utility(output.utility)}, ${rate(output.rate)}`,
    output.latency_s === null ? "" : `delay ${duration(output.latency_s)}`,
    output.waiting ? `${plural(output.waiting, "tuple")} not yet taken` : "",
    output.shed ? `${count(output.shed)} shed` : "",
    output.good_zone === false ? "outside its good zone" : "",
    output.failed ?? "",
  ]
    .filter(Boolean)
    .join("\n");
}

export function pointText(point: PointFigures): string {
  const attached = point.attached.length;
  return `${count(point.rows)} · ${bytes(point.bytes)}` + (attached ? ` · ${attached} attached` : "");
}
