/** YAML as people write it: short collections in one line. */

import { Document, isCollection, isMap, isSeq, parse, parseDocument, visit, YAMLParseError, type Node } from "yaml";

import type { Json, NetworkDocument } from "../api/types";

const LINE = 96;

/** Collections that fit into a line are written in one, below `depth` levels of blocks. */
function flowSmall(document: Document, depth: number): void {
  visit(document, {
    Collection: (_, node, path) => {
      const level = path.filter((each) => isCollection(each)).length;
      if (level < depth) return;
      const text = JSON.stringify(node.toJSON());
      if (text.length <= LINE - 20 && !text.includes("\\n")) node.flow = true;
    },
  });
}

function write(value: unknown, depth: number): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  flowSmall(document, depth);
  return document.toString({ lineWidth: LINE, flowCollectionPadding: false });
}

/** A whole network: sections and names as blocks. */
export const networkYaml = (network: NetworkDocument): string => write(network, 2);

/** One declaration: its keys as a block. */
export const declarationYaml = (value: unknown): string => write(value, 1);

/** A value, or what is wrong: in which line, and between which offsets. */
export type Parsed = { value: Json } | { error: string; line: number; from: number; to: number };

export function parseYaml(text: string): Parsed {
  try {
    const value = parse(text) as Json | undefined;
    return { value: value ?? null };
  } catch (error) {
    if (!(error instanceof YAMLParseError)) throw error;
    return { error: error.message.split("\n")[0] ?? error.message, line: error.linePos?.[0].line ?? 1, from: error.pos[0], to: error.pos[1] };
  }
}

/** Where in the text a path is: from and to offsets; the deepest part of it that there is. */
export function rangeOf(text: string, path: (string | number)[]): [number, number] {
  const document = parseDocument(text);
  let node: Node | null = document.contents;
  let range: [number, number] = [0, Math.max(0, text.indexOf("\n"))];
  for (const key of path) {
    let found: Node | null = null;
    if (isMap(node)) {
      const pair = node.items.find((each) => String((each.key as { value?: unknown } | null)?.value) === String(key));
      found = (pair?.value as Node | null | undefined) ?? (pair?.key as Node | null | undefined) ?? null;
    } else if (isSeq(node)) found = (node.items[Number(key)] as Node | undefined) ?? null;
    if (!found?.range) break;
    range = [found.range[0], found.range[1]];
    node = found;
  }
  return range;
}

/** A network of pasted or opened text, YAML or JSON; or why it is none. */
export function parseNetwork(text: string): { network: NetworkDocument } | { error: string } {
  const found = parseYaml(text);
  if ("error" in found) return { error: `line ${found.line}: ${found.error}` };
  const { value } = found;
  if (typeof value !== "object" || value === null || Array.isArray(value) || typeof value.network !== "string")
    return { error: "This is no network: it has no key `network` with a name." };
  return { network: value as NetworkDocument };
}
