import { Panel } from "@xyflow/react";

import { useDraft } from "../store/draft";
import { useFocus } from "./focus";
import { zoomInto } from "./groups";
import { useModel } from "./model";

/** The way out of the groups that the person has gone into. */
export function Breadcrumbs() {
  const path = useFocus((state) => state.path);
  const groups = useModel((state) => state.grouping.groups);
  const network = useDraft((state) => state.draft.network);
  const known = path.flatMap((id) => groups.get(id) ?? []);
  if (!known.length) return null;
  return (
    <Panel position="top-left">
      <nav className="breadcrumbs" aria-label="Groups">
        <button type="button" onClick={() => zoomInto("")}>
          {network}
        </button>
        {known.map((group) => (
          <button key={group.id} type="button" onClick={() => zoomInto(group.id)}>
            {group.title}
          </button>
        ))}
      </nav>
    </Panel>
  );
}
