import { MiniMap, useStore } from "@xyflow/react";
import { useMemo } from "react";

import { useModel } from "./model";

/** The map of the network; there is none while everything can be seen. */
export function Overview() {
  const nodes = useModel((state) => state.scene.nodes);
  const bounds = useMemo(() => {
    const top = nodes.filter((node) => !node.parent);
    return {
      left: Math.min(...top.map((node) => node.x)),
      top: Math.min(...top.map((node) => node.y)),
      right: Math.max(...top.map((node) => node.x + node.width)),
      bottom: Math.max(...top.map((node) => node.y + node.height)),
    };
  }, [nodes]);
  const hidden = useStore(({ transform: [x, y, zoom], width, height }) => {
    if (!nodes.length) return true;
    return bounds.left * zoom + x >= 0 && bounds.top * zoom + y >= 0 && bounds.right * zoom + x <= width && bounds.bottom * zoom + y <= height;
  });
  return hidden ? null : <MiniMap pannable zoomable ariaLabel="Map of the network" className="minimap" />;
}
