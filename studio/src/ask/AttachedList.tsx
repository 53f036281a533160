import { api } from "../api/client";
import { Button } from "../components/Button";
import { useLive } from "../store/live";
import { useForbidden } from "../store/role";
import { ProblemNote } from "../watch/ProblemNote";
import { useAsk } from "../watch/useAsk";
import { useSql } from "./sqlStore";

/** The queries that are attached to points: show their rows, or detach them. */
export function AttachedList() {
  const attachments = useLive((state) => state.picture?.attachments ?? null);
  const shown = useSql((state) => state.attached);
  const forbidden = useForbidden("operator");
  const { run, problem, busy } = useAsk();
  const names = Object.entries(attachments ?? {});
  if (names.length === 0) return null;
  const detach = (name: string) =>
    run(async () => {
      await api.detach(name);
      if (useSql.getState().attached === name) useSql.setState({ attached: null });
    });
  return (
    <>
      <ul className="attached" aria-label="Attached queries">
        {names.map(([name, one]) => (
          <li key={name}>
            <button
              type="button"
              className="attached-name"
              aria-pressed={shown === name}
              title={one.query}
              onClick={() => useSql.setState({ attached: shown === name ? null : name })}
            >
              <strong className="mono">{name}</strong>
              <span className="quiet">
                {" "}
                at {one.point}, {one.caught_up ? "live" : "reading history"}
              </span>
            </button>
            <Button look="quiet" icon="close" aria-label={`Detach ${name}`} reason={forbidden} disabled={busy} onClick={() => void detach(name)} />
          </li>
        ))}
      </ul>
      <ProblemNote problem={problem} />
    </>
  );
}
