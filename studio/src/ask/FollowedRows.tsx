import { useMemo, useState, type ReactNode } from "react";

import { Button } from "../components/Button";
import { CopyButton } from "../components/CopyButton";
import { useDeployed } from "../store/deployed";
import { count, plural } from "../watch/format";
import { ProblemNote } from "../watch/ProblemNote";
import { inferFields, tupleJson } from "../watch/rows";
import { RowTable } from "../watch/RowTable";
import { useFollower } from "./following";
import { ResultChart } from "./ResultChart";

const STATES = { connecting: "connecting", live: "live", lost: "reconnecting", ended: "not followed" };

/** The rows of an output as they come, as a table that follows or holds still, and as a chart. */
export function FollowedRows({ output, lead }: { output: string; lead?: ReactNode }) {
  const found = useFollower(output);
  const [following, setFollowing] = useState(true);
  const [charted, setCharted] = useState(true);
  const [selected, setSelected] = useState<{ at: number; first: number } | null>(null);
  const known = useDeployed((state) => state.check?.queries[output]);
  const fields = useMemo(
    () => (known?.length === found.names.length ? known : inferFields(found.names, found.rows)),
    [known, found.names, found.rows],
  );
  const at = selected && selected.at + selected.first - found.forgotten;
  const row = at === null || at < 0 ? undefined : found.rows[at];
  return (
    <div className="following">
      <div className="panel-bar">
        {lead}
        <span className={found.state === "live" ? "quiet" : "tone-amber"} role="status">
          {STATES[found.state]}
        </span>
        {found.state === "ended" && <Button onClick={found.again}>Try again</Button>}
        <span className="quiet fixed">{plural(found.rows.length, "row")}</span>
        {found.forgotten > 0 && <span className="quiet">{count(found.forgotten)} older rows no longer kept here</span>}
        {found.gap && <span className="tone-amber">the connection was lost: rows may be missing</span>}
        {found.dropped > 0 && <span className="tone-amber">{count(found.dropped)} left out: too fast to show</span>}
        <span className="grow" />
        <Button aria-pressed={following} onClick={() => setFollowing(!following)}>
          {following ? "Following" : "Holding still"}
        </Button>
        <Button aria-pressed={charted} icon="aggregate" onClick={() => setCharted(!charted)}>
          Chart
        </Button>
        <CopyButton label="Copy JSON" text={row ? tupleJson(fields, row) : null} reason="Select a row first." />
        <Button onClick={found.clear}>Clear</Button>
      </div>
      <ProblemNote problem={found.problem} />
      <div className="following-body">
        <RowTable
          label={`Rows of ${output}, newest last`}
          fields={fields}
          rows={found.rows}
          first={found.forgotten}
          follow={following}
          onFollow={setFollowing}
          selected={at !== null && at >= 0 ? at : null}
          onSelect={(to) => {
            setFollowing(false);
            setSelected({ at: to, first: found.forgotten });
          }}
          empty="Waiting for rows …"
        />
        {charted && found.rows.length > 1 && <ResultChart fields={fields} rows={found.rows} />}
      </div>
    </div>
  );
}
