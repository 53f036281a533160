import { useLive } from "../store/live";
import { useUi } from "../store/ui";
import { FollowedRows } from "./FollowedRows";
import { follow, useFollowing } from "./following";

/** Follow the results of an output, a standing query or an attached query, without taking them. */
export function ResultsPanel() {
  const outputs = useLive((state) => Object.keys(state.picture?.outputs ?? {}));
  const queries = useLive((state) => Object.keys(state.picture?.queries ?? {}));
  const attached = useLive((state) => Object.keys(state.picture?.attachments ?? {}));
  const chosen = useFollowing((state) => state.output);
  const selected = useUi((state) => state.selected);
  const names = [...new Set([...outputs, ...queries, ...attached])];
  const pointed = selected && (selected.kind === "output" || selected.kind === "query") ? selected.name : null;
  const output = chosen ?? pointed ?? names[0] ?? null;
  const group = (label: string, found: string[]) =>
    found.length > 0 && (
      <optgroup label={label}>
        {found.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </optgroup>
    );
  if (output === null) return <p className="quiet pad">The network has no output yet.</p>;
  const choice = (
    <label className="choice">
      Results of{" "}
      <select data-testid="results-of" value={output} onChange={(event) => follow(event.target.value)}>
        {!names.includes(output) && <option>{output}</option>}
        {group("Outputs", outputs)}
        {group("Queries", queries.filter((name) => !outputs.includes(name)))}
        {group("Attached", attached)}
      </select>
    </label>
  );
  return (
    <section className="panel" aria-label="Results">
      <FollowedRows key={output} output={output} lead={choice} />
    </section>
  );
}
