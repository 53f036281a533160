import { memo, useMemo } from "react";

import { useLive } from "../store/live";
import { count, rate } from "../watch/format";
import { useModel } from "./model";
import { nodesInside } from "./inside";

/** A closed group shows the sums of what is inside. */
export const GroupFigures = memo(function GroupFigures({ id }: { id: string }) {
  const grouping = useModel((state) => state.grouping);
  const graph = useModel((state) => state.graph);
  const names = useMemo(
    () => nodesInside(graph, grouping, id).filter((each) => graph.nodes.get(each)?.kind === "box"),
    [graph, grouping, id],
  );
  const sums = useLive((state) => {
    const boxes = names.flatMap((name) => state.picture?.boxes[name] ?? []);
    if (!boxes.length) return null;
    const sum = (pick: (box: (typeof boxes)[number]) => number) => boxes.reduce((all, box) => all + pick(box), 0);
    const late = sum((box) => Object.values(box.late).reduce((all, one) => all + one, 0));
    return {
      flow: rate(sum((box) => box.in_rate)),
      held: sum((box) => box.held ?? 0) ? count(sum((box) => box.held ?? 0)) : "",
      late: late ? count(late) : "",
      shed: sum((box) => box.shed) ? count(sum((box) => box.shed)) : "",
    };
  });
  if (!sums) return null;
  return (
    <div className="figures" title="sums of the boxes inside">
      <span className="figure flow">{sums.flow}</span>
      {sums.held && <span className="figure">{sums.held} held</span>}
      {sums.late && <span className="figure tone-amber">{sums.late} late</span>}
      {sums.shed && <span className="figure tone-shed">{sums.shed} shed</span>}
    </div>
  );
});
