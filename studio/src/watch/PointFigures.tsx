import { memo } from "react";

import { useLive } from "../store/live";
import { pointText } from "./figures";
import { value } from "./format";

/** What a connection point keeps: rows, bytes, and what is attached to it. */
export const PointFigures = memo(function PointFigures({ name }: { name: string }) {
  const found = useLive((state) => {
    const point = state.picture?.points[name];
    if (!point) return null;
    const attached = point.attached.length ? `\nattached: ${point.attached.join(", ")}` : "";
    const oldest = point.oldest === null ? "" : `\noldest ${value(point.oldest)}`;
    return { text: pointText(point), title: `${name} keeps history${oldest}${attached}` };
  });
  if (!found) return null;
  return (
    <span className="figure" title={found.title}>
      {found.text}
    </span>
  );
});
