/** Reading a network document. */

import type { Declaration, Json, NetworkDocument, Section } from "../api/types";
import type { EntityKind, Selection } from "../store/ui";

/** One declaration's place in the document. */
export type Ref = { section: Section; name: string };
export type Declared = Declaration | string | string[];

/** The order of keys in a file. */
export const SECTIONS: Section[] = [
  "functions",
  "streams",
  "tables",
  "superboxes",
  "boxes",
  "queries",
  "connection_points",
  "views",
  "groups",
  "outputs",
];

/** Sections whose names are one name space. */
const SHARED: Section[] = [
  "streams",
  "tables",
  "superboxes",
  "boxes",
  "queries",
  "connection_points",
  "views",
];

const KINDS: Partial<Record<Section, EntityKind>> = {
  streams: "stream",
  tables: "table",
  boxes: "box",
  queries: "query",
  connection_points: "point",
  views: "view",
  groups: "group",
  outputs: "output",
};
const OF_KIND: Record<Exclude<EntityKind, "arc">, Section> = {
  stream: "streams",
  table: "tables",
  box: "boxes",
  query: "queries",
  point: "connection_points",
  view: "views",
  group: "groups",
  output: "outputs",
};

export const kindOf = (section: Section): EntityKind | undefined => KINDS[section];
export const sectionOf = (kind: Exclude<EntityKind, "arc">): Section => OF_KIND[kind];

export function refOf(selected: Selection | null): Ref | null {
  if (!selected || selected.kind === "arc") return null;
  return { section: sectionOf(selected.kind), name: selected.name };
}

export const emptyNetwork = (): NetworkDocument => ({ network: "untitled" });

export function entries(document: NetworkDocument, section: Section): [string, Declared][] {
  return Object.entries(document[section] ?? {});
}

export function declared(document: NetworkDocument, ref: Ref): Declared | undefined {
  return document[ref.section]?.[ref.name];
}

export function isEmpty(document: NetworkDocument): boolean {
  return SECTIONS.every((section) => entries(document, section).length === 0);
}

/** A declaration as an object, also where the file has the short form. */
export function asObject(section: Section, value: Declared | undefined): Declaration {
  if (value === undefined) return {};
  if (Array.isArray(value)) return { members: value };
  if (typeof value === "string") return section === "queries" ? { sql: value } : { from: value };
  return value;
}

/** The short form again, if the declaration says no more. */
export function asDeclared(section: Section, value: Declaration): Declared {
  const keys = Object.keys(value).filter((key) => value[key] !== undefined);
  const only = keys.length === 1 ? keys[0] : undefined;
  if (section === "queries" && only === "sql" && typeof value.sql === "string") return value.sql;
  if (section === "groups" && only === "members" && Array.isArray(value.members))
    return value.members.filter((member) => typeof member === "string");
  return value;
}

export function membersOf(document: NetworkDocument, group: string): string[] {
  const members = asObject("groups", document.groups?.[group]).members;
  return Array.isArray(members) ? members.filter((member) => typeof member === "string") : [];
}

/** By member (box or group) the group that contains it; a member of several is shown in the first. */
export function parents(document: NetworkDocument): Map<string, string> {
  const found = new Map<string, string>();
  for (const [group] of entries(document, "groups"))
    for (const member of membersOf(document, group))
      if (!found.has(member) && member !== group) found.set(member, group);
  // A chain that leads back to itself would never end.
  for (const start of [...found.keys()]) {
    const seen = new Set([start]);
    let at = start;
    for (let next = found.get(at); next !== undefined; next = found.get(at)) {
      if (seen.has(next)) {
        found.delete(at);
        break;
      }
      seen.add(next);
      at = next;
    }
  }
  return found;
}

export function takenNames(document: NetworkDocument, section: Section): Set<string> {
  const sections = SHARED.includes(section) ? SHARED : [section];
  return new Set(sections.flatMap((each) => Object.keys(document[each] ?? {})));
}

/** `base`, or `base2`, `base3` … if it is taken. */
export function freeName(document: NetworkDocument, section: Section, base: string, also?: Set<string>): string {
  const taken = takenNames(document, section);
  const stem = base.replace(/[^A-Za-z0-9_]/g, "_").replace(/^[^A-Za-z]+/, "") || "box";
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? stem : `${stem}${n}`;
    if (!taken.has(name) && !also?.has(name)) return name;
  }
}

export const NAME = /^[A-Za-z][A-Za-z0-9_]{0,99}$/;

/** Why a name cannot be used, or null. */
export function nameProblem(document: NetworkDocument, ref: Ref, name: string): string | null {
  if (!NAME.test(name)) return "A name begins with a letter and has letters, digits and _ only.";
  if (name !== ref.name && takenNames(document, ref.section).has(name)) return `${name} is taken.`;
  return null;
}

export function texts(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/** Where an entity of the shared name space, or an output, is declared. */
export function findRef(document: NetworkDocument, name: string): Ref | null {
  for (const section of [...SHARED, "outputs", "groups"] as Section[])
    if (section !== "superboxes" && document[section]?.[name] !== undefined) return { section, name };
  return null;
}
