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
  return <ArcTuples arc={selected.name} isStream={selected.kind === "stream"} />;
}
