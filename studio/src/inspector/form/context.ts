/** What a form knows about the network: fields, arcs, functions, and problems by path. */

import { createContext, useContext } from "react";

import type { ArcInfo, CheckReport, Declaration, Field, Json, NetworkDocument, Problem } from "../../api/types";
import { asObject, type Ref, texts } from "../../draft/document";
import type { Path } from "../../draft/edits";
import type { Completion } from "../../components/CodeEditor";
import type { SqlFunction } from "../../store/session";

export type FormContext = {
  root: Json;
  section: string;
  fields: Field[];
  arcs: string[];
  tables: string[];
  expressionWords: Completion[];
  sqlWords: Completion[];
  problems: Problem[];
  readOnly: boolean;
  set: (path: Path, value: Json | undefined) => void;
};

export const Context = createContext<FormContext | null>(null);

export function useForm(): FormContext {
  const found = useContext(Context);
  if (!found) throw new Error("a form field stands outside of a form");
  return found;
}

/** The problem at a path, or below it if `path` is shown as one control. */
export function problemAt(problems: Problem[], path: Path): Problem | undefined {
  return problems.find((problem) => {
    const at = (problem.path ?? []).slice(2);
    return at.length > 0 && path.every((key, index) => String(at[index]) === String(key)) && at.length >= path.length;
  });
}

/** The arcs that a declaration reads, with the name by which its expressions call each. */
export function readArcs(ref: Ref, declaration: Declaration): { arc: string; prefix: string }[] {
  const single = declaration[ref.section === "boxes" ? "input" : ref.section === "connection_points" ? "on" : "from"];
  if (typeof single === "string") return [{ arc: single, prefix: "" }];
  const prefixes: Record<string, string[]> = { join: ["left.", "right."], resample: ["left.", "right."], wait_for: ["held.", "signal."] };
  const own = prefixes[String(declaration.box)] ?? [];
  return texts(declaration.inputs).map((arc, index) => ({ arc, prefix: own[index] ?? "" }));
}

function fieldsOf(document: NetworkDocument, report: CheckReport | null, arc: string): Field[] {
  const known: ArcInfo | undefined = report?.arcs[arc];
  if (known) return known.fields;
  const schema = asObject("tables", document.tables?.[arc]).schema ?? asObject("streams", document.streams?.[arc]).schema;
  if (!schema || typeof schema !== "object" || Array.isArray(schema)) return [];
  return Object.entries(schema).map(([name, type]) => ({ name, type: String(type) }));
}

/** Fields that the expressions of a declaration may name. */
export function readableFields(document: NetworkDocument, report: CheckReport | null, ref: Ref): Field[] {
  const declaration = asObject(ref.section, document[ref.section]?.[ref.name]);
  if (["streams", "tables"].includes(ref.section) || (ref.section === "connection_points" && declaration.store !== undefined)) return fieldsOf({ ...document, streams: { own: declaration }, tables: {} }, null, "own");
  return readArcs(ref, declaration).flatMap(({ arc, prefix }) =>
    fieldsOf(document, report, arc).map((field) => ({ name: prefix + field.name, type: field.type })),
  );
}

const KEYWORDS = ["AND", "OR", "NOT", "IS NULL", "IS NOT NULL", "BETWEEN", "LIKE", "IN", "CASE WHEN", "THEN", "ELSE", "END", "CAST", "INTERVAL"];
const SQL_KEYWORDS = ["SELECT", "FROM", "WHERE", "GROUP BY", "UNION", "AS", "RANGE", "SLIDE", "WA", "ROWS", "UPDATE", "SET", "INSERT INTO", "VALUES"];

export function expressionWords(fields: Field[], functions: SqlFunction[]): Completion[] {
  return [
    ...fields.map((field) => ({ label: field.name, detail: field.type, boost: 2 })),
    ...functions.map((each) => ({ label: each.name, detail: each.signature, apply: `${each.name}(`, boost: each.kind === "aggregate" ? 1 : 0 })),
    ...KEYWORDS.map((word) => ({ label: word, boost: -1 })),
  ];
}

/** Words of a declaration in YAML: the keys that its schema has, arcs, and what its expressions may name. */
export function yamlWords(keys: Iterable<string>, arcs: string[], others: Completion[]): Completion[] {
  const known = new Set(others.map((each) => each.label));
  return [
    ...[...keys].map((key) => ({ label: key, detail: "key", apply: `${key}: `, boost: 3 })),
    ...arcs.filter((arc) => !known.has(arc)).map((arc) => ({ label: arc, detail: "arc", boost: 2 })),
    ...others,
  ];
}

/** Words of a SQL text: arcs with their fields, tables, functions. */
export function sqlWords(document: NetworkDocument, report: CheckReport | null, functions: SqlFunction[], parameters: Field[]): Completion[] {
  const names = [...Object.keys(report?.arcs ?? {}), ...Object.keys(document.tables ?? {})];
  const fields = new Map<string, Completion>();
  for (const name of names)
    for (const field of fieldsOf(document, report, name)) fields.set(field.name, { label: field.name, detail: field.type, boost: 1 });
  return [
    ...[...new Set(names)].map((name) => ({ label: name, detail: "arc", apply: /[/]/.test(name) ? `\`${name}\`` : name, boost: 2 })),
    ...fields.values(),
    ...parameters.map((field) => ({ label: `:${field.name}`, detail: field.type })),
    ...expressionWords([], functions),
    ...SQL_KEYWORDS.map((word) => ({ label: word })),
  ];
}
