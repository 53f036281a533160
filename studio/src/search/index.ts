/** Finding things by name, kind, tag, description, field, and boxes to add. */

import type { CheckReport, NetworkDocument, PaletteEntry } from "../api/types";
import { ownerOf } from "../draft/arcs";
import { asObject, entries, kindOf, SECTIONS, texts, type Ref } from "../draft/document";
import type { EntityKind } from "../store/ui";

export type Found =
  | { type: "entity"; ref: Ref; kind: Exclude<EntityKind, "arc">; box: string; why: string; score: number }
  | { type: "add"; entry: PaletteEntry; score: number };

/** How well a text matches: 0 not at all, more is better. */
function score(text: string, words: string, exact: number): number {
  const lower = text.toLowerCase();
  if (lower === words) return exact + 3;
  if (lower.startsWith(words)) return exact + 2;
  if (lower.includes(words)) return exact + 1;
  return 0;
}

function fieldsOf(report: CheckReport | null): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [arc, info] of Object.entries(report?.arcs ?? {}))
    found.set(ownerOf(arc), [...(found.get(ownerOf(arc)) ?? []), ...info.fields.map((field) => field.name)]);
  for (const [query, fields] of Object.entries(report?.queries ?? {})) found.set(query, fields.map((field) => field.name));
  return found;
}

export function find(document: NetworkDocument, report: CheckReport | null, palette: PaletteEntry[], text: string): Found[] {
  const words = text.trim().toLowerCase();
  const fields = fieldsOf(report);
  const found: Found[] = [];
  for (const section of SECTIONS) {
    const kind = kindOf(section);
    if (!kind || kind === "arc") continue;
    for (const [name, value] of entries(document, section)) {
      const declaration = asObject(section, value);
      const box = section === "boxes" ? String(declaration.box) : "";
      const best = words ? reason(words, name, box || kind, declaration.description, texts(declaration.tags), fields.get(name) ?? []) : { score: 1, why: "" };
      if (best.score) found.push({ type: "entity", ref: { section, name }, kind, box, ...best });
    }
  }
  if (words)
    for (const entry of palette) {
      const points = Math.max(score(entry.kind, words, 20), words.length > 3 ? score(entry.summary, words, 1) : 0);
      if (points) found.push({ type: "add", entry, score: points });
    }
  return found.sort((a, b) => b.score - a.score).slice(0, 60);
}

function reason(words: string, name: string, kind: string, description: unknown, tags: string[], fields: string[]): { score: number; why: string } {
  const candidates = [
    { score: score(name, words, 30), why: "" },
    ...tags.map((tag) => ({ score: score(tag, words, 15), why: `tag ${tag}` })),
    ...fields.map((field) => ({ score: score(field, words, 10), why: `field ${field}` })),
    { score: score(kind, words, 6), why: kind },
    { score: typeof description === "string" ? score(description, words, 3) : 0, why: typeof description === "string" ? description : "" },
  ];
  return candidates.reduce((best, each) => (each.score > best.score ? each : best));
}
