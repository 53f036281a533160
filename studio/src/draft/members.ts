/** Boxes and groups go into a group, or out of it. */

import type { NetworkDocument } from "../api/types";
import { asDeclared, asObject, entries, membersOf } from "./document";

/** The document with `names` as members of `group` and of no other; null: of none. An empty group goes. */
export function moveInto(document: NetworkDocument, names: string[], group: string | null): NetworkDocument {
  const moved = names.filter((name) => name !== group);
  const groups = Object.fromEntries(
    entries(document, "groups").flatMap(([name, value]) => {
      const before = membersOf(document, name);
      const kept = before.filter((member) => !moved.includes(member));
      const members = name === group ? [...kept, ...moved] : kept;
      if (!members.length && before.length) return [];
      return [[name, members.length === before.length && members.every((each, at) => each === before[at]) ? value : asDeclared("groups", { ...asObject("groups", value), members })]];
    }),
  );
  if (Object.keys(groups).length) return { ...document, groups };
  const { groups: none, ...rest } = document;
  return none ? rest : document;
}
