import { memo } from "react";

import { useLive } from "../store/live";
import { count } from "./format";

/** How many rows a query has given, or why it has stopped. */
export const QueryFigures = memo(function QueryFigures({ name }: { name: string }) {
  const found = useLive((state) => {
    const query = state.picture?.queries[name];
    return query ? { rows: count(query.matches), failed: query.failed } : null;
  });
  if (!found) return null;
  return (
    <div className="figures">
      {found.failed ? (
        <span className="figure tone-red" title={found.failed}>
          ■ failed
        </span>
      ) : (
        <span className="figure flow" title="rows that the query has given">
          {found.rows} {found.rows === "1" ? "row" : "rows"}
        </span>
      )}
    </div>
  );
});
