/** Figures of boxes, arcs, outputs and points as text (pure). */

import type { ArcFigures, BoxFigures, OutputFigures, PointFigures } from "../api/types";
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

/** How pressing the queue of an arc is: the age of its oldest tuple against what outputs bear. */
export function arcTone(arc: ArcFigures): Tone {
  if (arc.queued > 0 && arc.oldest_s !== null && arc.patience_s !== null) {
    const used = arc.patience_s > 0 ? arc.oldest_s / arc.patience_s : Infinity;
    if (used >= 1) return "red";
    if (used >= 0.5) return "amber";
  }
  return arc.rate > 0 || arc.queued > 0 ? "calm" : "idle";
}

/** Thickness in pixels: logarithmic in the rate, in steps of half a pixel. */
export function arcWidth(perSecond: number): number {
  const width = 1.5 + Math.log10(1 + Math.max(perSecond, 0)) * 1.1;
  return Math.min(Math.round(width * 2) / 2, 8);
}

/** What stands on an arc: its queue, and how long the oldest tuple has waited if that presses. */
export function arcLabel(arc: ArcFigures): { queue: string; age: string } {
  const tone = arcTone(arc);
  const pressed = tone === "amber" || tone === "red";
  return { queue: arc.queued ? count(arc.queued) : "", age: pressed ? duration(arc.oldest_s) : "" };
}

const PRESSURE: Record<Tone, string> = {
  idle: "",
  calm: "",
  amber: "the oldest tuple has used half of the time that outputs can bear",
  red: "the oldest tuple waits longer than outputs can bear",
};

const waited = (arc: ArcFigures): string =>
  arc.queued && arc.oldest_s !== null
    ? duration(arc.oldest_s) + (arc.patience_s === null ? "" : ` of ${duration(arc.patience_s)}`)
    : "";

/** What an arc carries; an empty text is not shown. */
export function arcFacts(arc: ArcFigures): { rate: string; queue: string; age: string; mark: string } {
  return {
    rate: `${rate(arc.rate)}, ${plural(arc.tuples, "tuple")} in all`,
    queue: arc.queued ? plural(arc.queued, "tuple") : "empty",
    age: [waited(arc), PRESSURE[arcTone(arc)]].filter(Boolean).join(": "),
    mark: marks(arc.mark),
  };
}

export function arcTitle(name: string, arc: ArcFigures): string {
  return [
    `${name}: ${rate(arc.rate)}, ${plural(arc.tuples, "tuple")} in all`,
    arc.queued ? `${plural(arc.queued, "tuple")} queued` : "",
    waited(arc) && `oldest ${waited(arc)}`,
    PRESSURE[arcTone(arc)],
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
