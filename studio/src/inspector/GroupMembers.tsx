import { toggleGroup, zoomInto } from "../canvas/groups";
import { ungroupNamed } from "../canvas/actions";
import { nodeId } from "../canvas/graph";
import { Button } from "../components/Button";
import { findRef, kindOf, membersOf } from "../draft/document";
import { useDraft } from "../store/draft";
import { useEditReason } from "../store/session";
import { useUi } from "../store/ui";

/** What is in a group, and what can be done with it. */
export function GroupMembers({ name }: { name: string }) {
  const draft = useDraft((state) => state.draft);
  const reason = useEditReason();
  const { select, ask } = useUi();
  const id = nodeId("groups", name);
  const show = (member: string) => {
    const ref = draft.groups?.[member] !== undefined ? ({ section: "groups", name: member } as const) : findRef(draft, member);
    const kind = ref && kindOf(ref.section);
    if (!ref || !kind || kind === "arc") return;
    ask({ kind: "center", node: nodeId(ref.section, ref.name) });
    select({ kind, name: member });
  };
  return (
    <>
      <div className="button-row">
        <Button icon="fit" onClick={() => zoomInto(id)}>
          Go into
        </Button>
        <Button icon="group" onClick={() => toggleGroup(id)}>
          Open or close
        </Button>
        <Button icon="ungroup" reason={reason} onClick={() => ungroupNamed(name)}>
          Ungroup
        </Button>
      </div>
      <ul className="outline-list">
        {membersOf(draft, name).map((member) => (
          <li key={member}>
            <button type="button" onClick={() => show(member)}>
              {member}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
