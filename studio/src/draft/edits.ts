/** Changes of the network: functions from a document to a document; what is given stays as it is. */

import type { Declaration, Json, NetworkDocument, Section } from "../api/types";
import { ownerOf, suffixOf } from "./arcs";
import { asDeclared, asObject, declared, entries, freeName, membersOf, SECTIONS, texts, type Declared, type Ref } from "./document";
import { renameSource } from "./sql";

export type Path = (string | number)[];
/** An input of an entity: `index` where it has several. */
export type InputOf = Ref & { index: number };

/** The document with its keys in the order of a file, without empty sections. */
function tidy(document: NetworkDocument): NetworkDocument {
  const made: NetworkDocument = { network: document.network };
  for (const section of SECTIONS) {
    const content = document[section];
    if (content && Object.keys(content).length) made[section] = content;
  }
  if (document.engine && Object.keys(document.engine).length) made.engine = document.engine;
  return made;
}

function withSection(document: NetworkDocument, section: Section, content: [string, Declared][]): NetworkDocument {
  return tidy({ ...document, [section]: Object.fromEntries(content) });
}

/** Declare `ref`, or change its declaration in place. */
export function put(document: NetworkDocument, ref: Ref, value: Declared): NetworkDocument {
  const made = typeof value === "object" && !Array.isArray(value) ? asDeclared(ref.section, value) : value;
  return tidy({ ...document, [ref.section]: { ...document[ref.section], [ref.name]: made } });
}

function isMap(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function without<T>(map: { [key: string]: T }, key: string): { [key: string]: T } {
  return Object.fromEntries(Object.entries(map).filter(([each]) => each !== key));
}

function setIn(value: Json | undefined, path: Path, to: Json | undefined): Json | undefined {
  const [key, ...rest] = path;
  if (key === undefined) return to;
  if (typeof key === "number") {
    const list = Array.isArray(value) ? [...value] : [];
    const made = setIn(list[key], rest, to);
    if (made === undefined) list.splice(key, 1);
    else list[key] = made;
    return list;
  }
  const map: { [key: string]: Json } = isMap(value) ? value : {};
  const made = setIn(map[key], rest, to);
  return made === undefined ? without(map, key) : { ...map, [key]: made };
}

/** Set one key of a declaration, however deep; `undefined` removes it. */
export function setKey(document: NetworkDocument, ref: Ref, path: Path, value: Json | undefined): NetworkDocument {
  const before = asObject(ref.section, declared(document, ref)) as Json;
  return put(document, ref, (setIn(before, path, value) ?? {}) as Declaration);
}

/** Set a key of the document itself, such as ["engine", "train"]. */
export function setTop(document: NetworkDocument, path: Path, value: Json | undefined): NetworkDocument {
  return tidy(setIn(document as Json, path, value) as NetworkDocument);
}

/** Rename a key of a map without changing its place. */
export function renameKey(map: { [key: string]: Json }, from: string, to: string): { [key: string]: Json } {
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [key === from ? to : key, value]));
}

// ── references to arcs ──

const READS: Partial<Record<Section, string>> = { outputs: "from", views: "from", connection_points: "on" };

/** A declaration with every arc that it reads replaced; null takes the arc away. */
function mapArcs(section: Section, value: Declared, change: (arc: string) => string | null): Declared {
  const object = asObject(section, value);
  let made: Declaration = { ...object };
  const key = READS[section] ?? "input";
  const single = object[key];
  if (section !== "queries" && typeof single === "string") {
    const changed = change(single);
    made = changed === null ? without(made, key) : { ...made, [key]: changed };
  }
  if (section === "boxes" && Array.isArray(object.inputs)) {
    const all = texts(object.inputs).map(change);
    made.inputs = object.box === "union" ? all.filter((arc) => arc !== null) : all.map((arc) => arc ?? "");
  } else if (section === "boxes" && isMap(object.inputs)) {
    made.inputs = Object.fromEntries(
      Object.entries(object.inputs).flatMap(([port, arc]) => {
        const changed = typeof arc === "string" ? change(arc) : null;
        return changed === null ? [] : [[port, changed]];
      }),
    );
  }
  return asDeclared(section, made);
}

function mapAll(document: NetworkDocument, change: (arc: string) => string | null): NetworkDocument {
  let made = document;
  for (const section of ["boxes", "connection_points", "views", "outputs"] as Section[]) {
    if (!document[section]) continue;
    made = withSection(made, section, entries(made, section).map(([name, value]) => [name, mapArcs(section, value, change)]));
  }
  return made;
}

/** Rename an entity, and everything that refers to it. */
export function rename(document: NetworkDocument, ref: Ref, to: string): NetworkDocument {
  if (ref.name === to || declared(document, ref) === undefined) return document;
  let made = withSection(
    document,
    ref.section,
    entries(document, ref.section).map(([name, value]) => [name === ref.name ? to : name, value]),
  );
  if (ref.section === "groups" || ref.section === "boxes") made = renameMember(made, ref.name, to);
  if (ref.section === "outputs" || ref.section === "groups") return made;
  made = mapAll(made, (arc) => (ownerOf(arc) === ref.name ? to + suffixOf(arc) : arc));
  return renameInText(made, ref, to);
}

function renameMember(document: NetworkDocument, from: string, to: string): NetworkDocument {
  return withMembers(document, (members) => members.map((member) => (member === from ? to : member)));
}

function withMembers(document: NetworkDocument, change: (members: string[], group: string) => string[]): NetworkDocument {
  if (!document.groups) return document;
  return withSection(
    document,
    "groups",
    entries(document, "groups").map(([group, value]) => [
      group,
      asDeclared("groups", { ...asObject("groups", value), members: change(membersOf(document, group), group) }),
    ]),
  );
}

/** Rename in SQL of queries and boxes, in `table` of latches and in `box` of instances. */
function renameInText(document: NetworkDocument, ref: Ref, to: string): NetworkDocument {
  let made = document;
  for (const section of ["queries", "boxes"] as Section[]) {
    if (!document[section]) continue;
    const changed = entries(made, section).map(([name, value]): [string, Declared] => {
      const object = { ...asObject(section, value) };
      if (typeof object.sql === "string") object.sql = renameSource(object.sql, ref.name, to);
      if (ref.section === "tables" && object.table === ref.name) object.table = to;
      if (ref.section === "superboxes" && object.box === ref.name) object.box = to;
      return [name, asDeclared(section, object)];
    });
    made = withSection(made, section, changed);
  }
  return made;
}

/** Remove entities; inputs that read them stay open. */
export function remove(document: NetworkDocument, refs: Ref[]): NetworkDocument {
  let made = document;
  const gone = new Set<string>();
  for (const ref of refs) {
    const kept = entries(made, ref.section).filter(([name]) => name !== ref.name);
    made = withSection(made, ref.section, kept);
    if (ref.section === "groups") made = withMembers(made, (members) => members.filter((member) => member !== ref.name));
    else if (ref.section !== "outputs") gone.add(ref.name);
  }
  if (!gone.size) return made;
  made = mapAll(made, (arc) => (gone.has(ownerOf(arc)) ? null : arc));
  return dropEmptyGroups(withMembers(made, (members) => members.filter((member) => !gone.has(member))));
}

function dropEmptyGroups(document: NetworkDocument): NetworkDocument {
  const empty = entries(document, "groups").filter(([group]) => membersOf(document, group).length === 0);
  if (!empty.length) return document;
  return dropEmptyGroups(remove(document, empty.map(([name]) => ({ section: "groups", name }))));
}

// ── wiring ──

/** Let an input read `arc`. A box with several inputs gets it at `index`, or as one more. */
export function connect(document: NetworkDocument, arc: string, target: InputOf, ports?: string[]): NetworkDocument {
  const before = asObject(target.section, declared(document, target));
  const single = READS[target.section];
  if (single) return setKey(document, target, [single], arc);
  const several = Array.isArray(before.inputs) || isMap(before.inputs) || MANY.has(String(before.box));
  if (!several) return setKey(document, target, ["input"], arc);
  const port = ports?.[target.index];
  if (isMap(before.inputs) && port !== undefined) return setKey(document, target, ["inputs", port], arc);
  const inputs = texts(before.inputs);
  if (before.box === "union") return inputs.includes(arc) ? document : setKey(document, target, ["inputs"], [...inputs, arc]);
  while (inputs.length < target.index) inputs.push("");
  inputs[target.index] = arc;
  return setKey(document, target, ["inputs"], inputs);
}

const MANY = new Set(["join", "resample", "wait_for", "union"]);

/** Take `arc` away from an input. */
export function disconnect(document: NetworkDocument, arc: string, target: InputOf): NetworkDocument {
  const before = declared(document, target);
  if (before === undefined) return document;
  let at = -1;
  const several = texts(asObject(target.section, before).inputs).length > 0;
  const made = mapArcs(target.section, before, (read) => {
    at += 1;
    const here = several && asObject(target.section, before).box !== "union" ? at === target.index : true;
    return read === arc && here ? null : read;
  });
  return put(document, target, made);
}

/** Put a box between an arc and the input that reads it. */
export function splice(document: NetworkDocument, arc: string, target: InputOf, box: string, value?: Declaration): NetworkDocument {
  const ref: Ref = { section: "boxes", name: box };
  const found = value ?? asObject("boxes", declared(document, ref));
  const wired = connect(put(document, ref, found), arc, { ...ref, index: 0 });
  return mapTarget(wired, arc, target, box);
}

function mapTarget(document: NetworkDocument, arc: string, target: InputOf, to: string): NetworkDocument {
  const before = declared(document, target);
  if (before === undefined) return document;
  let at = -1;
  let done = false;
  const changed = mapArcs(target.section, before, (read) => {
    at += 1;
    if (done || read !== arc || (at !== target.index && asObject(target.section, before).box !== "union")) return read;
    done = true;
    return to;
  });
  return put(document, target, changed);
}

// ── groups and the clipboard ──

/** Put boxes and groups into a new group, in the place of the group that all of them are in. */
export function group(document: NetworkDocument, name: string, members: string[]): NetworkDocument {
  const inside = new Set(members);
  const around = entries(document, "groups").find(([each]) => {
    const theirs = membersOf(document, each);
    return members.every((member) => theirs.includes(member));
  })?.[0];
  const without = withMembers(document, (theirs, each) => {
    const kept = theirs.filter((member) => !inside.has(member));
    return each === around ? [...kept, name] : kept;
  });
  return dropEmptyGroups(put(without, { section: "groups", name }, members));
}

/** Take a group away; its members belong to the group around it. */
export function ungroup(document: NetworkDocument, name: string): NetworkDocument {
  const inside = membersOf(document, name);
  const without = withMembers(document, (members, each) =>
    each === name ? members : members.flatMap((member) => (member === name ? inside : [member])),
  );
  return withSection(without, "groups", entries(without, "groups").filter(([each]) => each !== name));
}

export type Clip = { ref: Ref; value: Declared }[];

export function copy(document: NetworkDocument, refs: Ref[]): Clip {
  return refs.flatMap((ref) => {
    const value = declared(document, ref);
    return value === undefined ? [] : [{ ref, value }];
  });
}

/** Paste with free names; wires between what is pasted stay among it. Gives the new names in order. */
export function paste(document: NetworkDocument, clip: Clip): { document: NetworkDocument; refs: Ref[] } {
  const shared = new Map<string, string>();
  const taken = new Set<string>();
  const refs = clip.map(({ ref }) => {
    const name = freeName(document, ref.section, ref.name, taken);
    taken.add(name);
    if (ref.section !== "outputs") shared.set(ref.name, name);
    return { section: ref.section, name };
  });
  let made = document;
  clip.forEach(({ ref, value }, at) => {
    const change = (arc: string) => (shared.get(ownerOf(arc)) ?? ownerOf(arc)) + suffixOf(arc);
    const changed = ref.section === "groups"
      ? membersOf({ network: "", groups: { [ref.name]: value } }, ref.name).map((member) => shared.get(member) ?? member)
      : mapArcs(ref.section, value, change);
    made = put(made, refs[at] as Ref, changed);
  });
  return { document: made, refs };
}
