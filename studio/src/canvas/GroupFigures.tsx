import { memo, useMemo } from "react";

import type { BoxFigures, OutputFigures } from "../api/types";
import { useLive } from "../store/live";
import { outputTone } from "../watch/figures";
import { count, rate, utility } from "../watch/format";
import { nodesInside } from "./inside";
import { useModel } from "./model";

/** The output that does worst: one that has failed, else that of the least utility. */
function worstOf(outputs: OutputFigures[]): OutputFigures | null {
  const least = (one: OutputFigures, other: OutputFigures) => ((other.utility ?? Infinity) < (one.utility ?? Infinity) ? other : one);
  return outputs.find((output) => output.failed) ?? (outputs.some((output) => output.utility !== null) ? outputs.reduce(least) : null);
}

/** A closed group shows the sums of what is inside, and the least utility of the outputs inside. */
export const GroupFigures = memo(function GroupFigures({ id }: { id: string }) {
  const grouping = useModel((state) => state.grouping);
  const graph = useModel((state) => state.graph);
  const inside = useMemo(() => nodesInside(graph, grouping, id).flatMap((each) => graph.nodes.get(each) ?? []), [graph, grouping, id]);
  const sums = useLive((state) => {
    const { picture } = state;
    if (!picture) return null;
    const names = new Set(inside.filter((node) => node.kind === "box").map((node) => node.name));
    // The engine names the boxes of an instance of a superbox after it.
    const boxes = Object.entries(picture.boxes).flatMap(([name, box]) => (names.has(name.split("/")[0] ?? name) ? [box] : []));
    const outputs = inside.flatMap((node) => (node.kind === "output" ? (picture.outputs[node.name] ?? []) : []));
    if (!boxes.length && !outputs.length) return null;
    const total = (pick: (box: BoxFigures) => number) => boxes.reduce((all, box) => all + pick(box), 0);
    const counted = (pick: (box: BoxFigures) => number) => (total(pick) ? count(total(pick)) : "");
    const worst = worstOf(outputs);
    return {
      flow: boxes.length ? rate(total((box) => box.in_rate)) : "",
      utility: !worst ? "" : worst.failed ? "failed" : `◔ ${utility(worst.utility)}`,
      tone: worst ? outputTone(worst) : "idle",
      halted: boxes.find((box) => box.halted !== null)?.halted ?? "",
      held: counted((box) => box.held ?? 0),
      late: counted((box) => Object.values(box.late).reduce((all, one) => all + one, 0)),
      dead: counted((box) => box.dead),
      shed: counted((box) => box.shed),
    };
  });
  if (!sums) return null;
  return (
    <div className="figures" title="sums of the boxes inside">
      {sums.flow && <span className="figure flow">{sums.flow}</span>}
      {sums.utility && (
        <span className={`figure flow tone-${sums.tone}`} title="least utility of the outputs inside">
          {sums.utility}
        </span>
      )}
      {sums.halted && (
        <span className="figure tone-red" title={sums.halted}>
          ■ halted
        </span>
      )}
      {sums.late && <span className="figure tone-amber">{sums.late} late</span>}
      {sums.dead && <span className="figure tone-red">{sums.dead} dead</span>}
      {sums.shed && <span className="figure tone-shed">{sums.shed} shed</span>}
      {sums.held && <span className="figure">{sums.held} held</span>}
    </div>
  );
});
