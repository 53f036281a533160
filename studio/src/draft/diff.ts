/** What a draft changes, declaration by declaration. */

import type { NetworkDocument } from "../api/types";
import { declared, SECTIONS, type Ref } from "./document";

export type Change = "added" | "changed" | "removed";
export type Difference = { added: Ref[]; changed: Ref[]; removed: Ref[]; engine: boolean; name: boolean };

/** Equality of plain data; the order of keys counts only for inputs, which are lists. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => key in right && same(left[key], right[key]));
}

export function difference(deployed: NetworkDocument, draft: NetworkDocument): Difference {
  const found: Difference = {
    added: [],
    changed: [],
    removed: [],
    engine: !same(deployed.engine ?? {}, draft.engine ?? {}),
    name: deployed.network !== draft.network,
  };
  for (const section of SECTIONS) {
    if (deployed[section] === draft[section]) continue;
    for (const name of Object.keys(draft[section] ?? {})) {
      const ref = { section, name };
      const before = declared(deployed, ref);
      if (before === undefined) found.added.push(ref);
      else if (!same(before, declared(draft, ref))) found.changed.push(ref);
    }
    for (const name of Object.keys(deployed[section] ?? {}))
      if (draft[section]?.[name] === undefined) found.removed.push({ section, name });
  }
  return found;
}

export function isDirty(found: Difference): boolean {
  return found.engine || found.name || found.added.length + found.changed.length + found.removed.length > 0;
}
