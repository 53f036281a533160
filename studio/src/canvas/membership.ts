/** Which group a place of the canvas belongs to, and what joins or leaves a group when it is moved. */

import { moveInto } from "../draft/members";
import { useDraft, type Positions } from "../store/draft";
import type { Point } from "./actions";
import type { FlowNode } from "./flow";
import { focus } from "./focus";
import { around } from "./grouping";
import { useModel } from "./model";
import { frameAt, placesOf, undisplaced } from "./scene";

/** The declared name of a group; null for none, and for one that the canvas made. */
export function declaredName(id: string | null): string | null {
  const group = id === null ? undefined : useModel.getState().grouping.groups.get(id);
  return group?.declared ? group.name : null;
}

/** The container at a place: the innermost open frame, else the group that is shown alone; null: none. */
export function containerAt({ x, y }: Point): string | null {
  return frameAt(useModel.getState().scene, x, y) ?? focus();
}

/** Where something new is kept that is shown at a place of the canvas. */
export function placeIn(container: string | null, id: string, { x, y }: Point): Positions {
  const { scene } = useModel.getState();
  const { layout } = useDraft.getState();
  const frame = container === focus() ? null : container;
  const base = (frame && placesOf(scene.nodes).get(frame)) || { x: 0, y: 0 };
  return { [id]: undisplaced(scene, layout, id, x - base.x, y - base.y, frame) };
}

/** The innermost group that both ends of an arc are in. */
export function commonGroup(source: string, target: string): string | null {
  const { grouping } = useModel.getState();
  const ofTarget = around(grouping, target);
  return around(grouping, source).filter((id) => ofTarget.includes(id)).at(-1) ?? null;
}

type Moved = { id: string; name: string; to: string | null; place: Positions };

/** The frame over which the middle of a dragged box or group stands; undefined if it cannot change its group. */
export function frameUnder(node: FlowNode): string | null | undefined {
  const member = "group" in node.data ? node.data.group.declared : node.data.info.kind === "box";
  if (!member) return undefined;
  const { scene } = useModel.getState();
  const base = (node.parentId && placesOf(scene.nodes).get(node.parentId)) || { x: 0, y: 0 };
  const [x, y] = [base.x + node.position.x + (node.width ?? 0) / 2, base.y + node.position.y + Math.min(node.height ?? 0, 88) / 2];
  return frameAt(scene, x, y, new Set([node.id]));
}

/** Of what was dragged, what has come into another group. */
function regrouped(nodes: FlowNode[]): Moved[] {
  const { scene } = useModel.getState();
  const dragged = new Set(nodes.map((node) => node.id));
  const places = placesOf(scene.nodes);
  return nodes.flatMap((node) => {
    const frame = frameUnder(node);
    const before = node.parentId ?? null;
    // What is dragged together with its frame stays in it.
    if (frame === undefined || frame === before || (before && dragged.has(before)) || (frame && dragged.has(frame))) return [];
    const [from, to] = [before ?? focus(), frame ?? focus()];
    if ((from !== null && declaredName(from) === null) || (to !== null && declaredName(to) === null)) return [];
    const base = (before && places.get(before)) || { x: 0, y: 0 };
    const at = { x: base.x + node.position.x, y: base.y + node.position.y };
    const name = "group" in node.data ? node.data.group.name : node.data.info.name;
    return [{ id: node.id, name, to: declaredName(to), place: placeIn(to, node.id, at) }];
  });
}

/** Let dragged boxes join the groups in whose frames they were dropped, and leave those they were dragged out of; gives their ids. */
export function regroup(nodes: FlowNode[]): Set<string> {
  const moved = regrouped(nodes);
  if (moved.length)
    useDraft.getState().edit((document) => moved.reduce((made, { name, to }) => moveInto(made, [name], to), document), { place: Object.assign({}, ...moved.map((each) => each.place)) });
  return new Set(moved.map((each) => each.id));
}
