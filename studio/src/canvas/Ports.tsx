import { Handle, Position } from "@xyflow/react";

import { useConnecting } from "./connecting";
import type { NodeInfo } from "./graph";

/** Handles of a node, labelled by meaning; while a wire is drawn, inputs that it fits light up. */
export function Ports({ info }: { info: NodeInfo }) {
  const look = useConnecting((state) => {
    if (!state.arc) return "";
    const fits = state.fits.get(info.id);
    return fits ? [...fits].join(" ") : "none";
  });
  const share = (at: number, of: number) => `${((at + 1) / (of + 1)) * 100}%`;
  const hidden = info.inputs.length === 0 && (info.kind === "query" || info.kind === "table");
  const fits = look.split(" ");
  return (
    <>
      {info.inputs.map((port, at) => (
        <Handle
          key={port.id}
          id={port.id}
          type="target"
          position={Position.Left}
          style={{ top: share(at, info.inputs.length) }}
          className={`port ${look && (fits.includes(port.id) ? "fits" : "misfits")}`}
          title={port.label || "input"}
        >
          {port.label && <span className="port-label in">{port.label}</span>}
        </Handle>
      ))}
      {hidden && <Handle id="in" type="target" position={Position.Left} className="port implied" isConnectable={false} />}
      {info.outputs.map((port, at) => (
        <Handle
          key={port.id}
          id={port.id}
          type="source"
          position={Position.Right}
          style={{ top: share(at, info.outputs.length) }}
          className="port"
          data-testid={`port-${port.arc}`}
          title={port.label ? `${port.label}: arc ${port.arc}` : `arc ${port.arc}`}
        >
          {info.outputs.length > 1 && port.label && <span className="port-label out">{port.label}</span>}
        </Handle>
      ))}
    </>
  );
}
