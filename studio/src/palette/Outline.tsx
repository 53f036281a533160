import { Icon } from "../components/Icon";
import { iconOf } from "../canvas/nodes";
import { nodeId } from "../canvas/graph";
import { useModel } from "../canvas/model";
import { entries, kindOf, SECTIONS } from "../draft/document";
import { useDraft } from "../store/draft";
import { useUi } from "../store/ui";
import type { Section } from "../api/types";

const TITLES: Partial<Record<Section, string>> = {
  streams: "Streams",
  tables: "Tables",
  boxes: "Boxes",
  queries: "Queries",
  connection_points: "Connection points",
  views: "Views",
  groups: "Groups",
  outputs: "Outputs",
};

/** Everything in the network by kind; choosing one shows it on the canvas. */
export function Outline() {
  const draft = useDraft((state) => state.draft);
  const changes = useModel((state) => state.changes);
  const problems = useModel((state) => state.problems);
  const { selected, select, ask } = useUi();
  return (
    <>
      {SECTIONS.map((section) => {
        const kind = kindOf(section);
        const names = entries(draft, section).map(([name]) => name);
        if (!kind || kind === "arc" || !names.length) return null;
        return (
          <section key={section}>
            <h3 className="side-heading">
              {TITLES[section]} <span className="count">{names.length}</span>
            </h3>
            <ul className="outline-list">
              {names.map((name) => {
                const id = nodeId(section, name);
                const declaration = draft[section]?.[name];
                const box = section === "boxes" && typeof declaration === "object" && !Array.isArray(declaration) ? String(declaration.box) : "";
                return (
                  <li key={name}>
                    <button
                      type="button"
                      aria-current={selected?.kind === kind && selected.name === name}
                      onClick={() => {
                        ask({ kind: "center", node: id });
                        select({ kind, name });
                      }}
                    >
                      <Icon name={iconOf({ kind, box })} />
                      <span className="outline-name">{name}</span>
                      {changes.has(id) && <span className="muted">draft</span>}
                      {problems.has(id) && <span className="outline-problem">problem</span>}
                    </button>
                  </li>
                );
              })}
            </ul>
          </section>
        );
      })}
    </>
  );
}
