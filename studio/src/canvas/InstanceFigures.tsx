import { memo, useMemo } from "react";

import { useLive } from "../store/live";
import { FiguresRow } from "../watch/BoxFiguresRow";
import { boxTexts, instanceFigures } from "../watch/figures";
import type { NodeInfo } from "./graph";
import { useModel } from "./model";

/** The figures of an instance of a superbox, of which the engine runs the boxes inside; nothing for other boxes. */
export const InstanceFigures = memo(function InstanceFigures({ info }: { info: NodeInfo }) {
  const edges = useModel((state) => state.graph.edges);
  const inputs = useMemo(() => edges.filter((edge) => edge.target === info.id).map((edge) => edge.arc), [edges, info.id]);
  const outputs = useMemo(() => info.outputs.map((port) => port.arc), [info.outputs]);
  const texts = useLive((state) => {
    const { picture } = state;
    if (!picture || info.name in picture.boxes) return null;
    const figures = instanceFigures(picture, info.name, inputs, outputs);
    return figures ? { ...boxTexts(figures), title: "sums of the boxes inside" } : null;
  });
  return texts && <FiguresRow texts={texts} />;
});
