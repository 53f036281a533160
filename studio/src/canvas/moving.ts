/** Moving without a mouse: into a group, out of it, and into an arc. */

import type { IconName } from "../components/Icon";
import { moveInto } from "../draft/members";
import { useDraft } from "../store/draft";
import { isLoose, spliceNode } from "./actions";
import { fitsOf } from "./connecting";
import { selectedNodes } from "./flow";
import { focus } from "./focus";
import { around, groupingOf, TOP } from "./grouping";
import { declaredName } from "./membership";
import { useModel } from "./model";
import { placeBeside } from "./place";

export type Choice = { key: string; label: string; note: string; icon: IconName; run: () => void };

/** The selected boxes and declared groups: what can be a member of a group. */
function movable(): { id: string; name: string }[] {
  return selectedNodes().flatMap(({ id, data }) => {
    if ("group" in data) return data.group.declared ? [{ id, name: data.group.name }] : [];
    return data.info.kind === "box" ? [{ id, name: data.info.name }] : [];
  });
}

/** Let them join a group, or leave theirs for the one around it; they stand beside what they are connected with there. */
function join(members: { id: string; name: string }[], group: string | null): void {
  const { graph } = useModel.getState();
  const { draft, layout, edit } = useDraft.getState();
  const names = members.map(({ name }) => name);
  const moved = new Set(members.map(({ id }) => id));
  const grouping = groupingOf(moveInto(draft, names, declaredName(group)), graph);
  const positions = Object.fromEntries(Object.entries(layout.positions).filter(([id]) => !moved.has(id)));
  const place = placeBeside(graph, grouping, group ?? TOP, positions, [...moved]);
  edit((document) => moveInto(document, names, declaredName(group)), { place });
}

/** Where the selected boxes and groups can go. */
export function moveChoices(): Choice[] {
  const { graph, grouping } = useModel.getState();
  const members = movable();
  const [first] = members;
  if (!first) return [];
  const parents = members.map(({ id }) => grouping.parent.get(id) ?? null);
  const inside = (id: string) => members.some((member) => id === member.id || around(grouping, id).includes(member.id));
  const found: Choice[] = [];
  const group = parents[0] ?? null;
  if (group !== null && group !== focus() && declaredName(group) !== null && parents.every((each) => each === group)) {
    const outer = grouping.parent.get(group) ?? null;
    found.push({ key: `out ${group}`, label: `out of ${declaredName(group)}`, note: outer === null ? "to the network" : `into ${declaredName(outer)}`, icon: "group", run: () => join(members, outer) });
  }
  for (const { id, title, declared } of grouping.groups.values())
    if (declared && !inside(id) && parents.some((parent) => parent !== id))
      found.push({ key: `into ${id}`, label: `into ${title}`, note: "join this group", icon: "group", run: () => join(members, id) });
  if (members.length === 1 && isLoose(first.id))
    for (const edge of graph.edges)
      if (!edge.implied && fitsOf(edge.arc).get(first.id)?.size)
        found.push({ key: `arc ${edge.id}`, label: `between ${edge.source} and ${graph.nodes.get(edge.target)?.name ?? edge.target}`, note: `into arc ${edge.arc}`, icon: "point", run: () => spliceNode(first.id, edge) });
  return found;
}
