import { useState } from "react";

import { nodeId, type OutPort } from "../canvas/graph";
import { useModel } from "../canvas/model";
import { refOf } from "../draft/document";
import { useUi, type Selection } from "../store/ui";
import { ArcTuples } from "./ArcTuples";
import { PointBrowser } from "./PointBrowser";
import { StoredTable } from "./StoredTable";

/** The tuples of what is selected: the latest of an arc, the history of a point, a table's rows. */
export function TuplesPanel() {
  const selected = useUi((state) => state.selected);
  if (!selected || selected.kind === "group")
    return <p className="quiet pad">Select an arc, a stream, a box, an output or a connection point to see its tuples.</p>;
  return <Tuples key={`${selected.kind}:${selected.name}`} selected={selected} />;
}

function Tuples({ selected }: { selected: Selection }) {
  if (selected.kind === "table") return <StoredTable name={selected.name} />;
  if (selected.kind === "point" || selected.kind === "view") return <PointBrowser name={selected.name} />;
  if (selected.kind === "box" || selected.kind === "stream") return <PortTuples selected={selected} />;
  return <ArcTuples arc={selected.name} />;
}

/** The tuples of one of the arcs that come out: a box with routes has no arc of its own name. */
function PortTuples({ selected }: { selected: Selection }) {
  const ref = refOf(selected);
  const ports = useModel((state) => (ref ? state.graph.nodes.get(nodeId(ref.section, ref.name))?.outputs : undefined));
  const [chosen, setChosen] = useState<string | null>(null);
  const arc = ports?.find((port) => port.arc === chosen)?.arc ?? ports?.[0]?.arc ?? selected.name;
  const picker = ports && ports.length > 1 ? <PortPicker ports={ports} arc={arc} onChange={setChosen} /> : null;
  return <ArcTuples key={arc} arc={arc} lead={picker} />;
}

function PortPicker({ ports, arc, onChange }: { ports: OutPort[]; arc: string; onChange: (arc: string) => void }) {
  return (
    <select aria-label="Port" value={arc} onChange={(event) => onChange(event.target.value)} data-testid="tuples-port">
      {ports.map((port) => (
        <option key={port.arc} value={port.arc}>
          {port.label || port.arc}
        </option>
      ))}
    </select>
  );
}
