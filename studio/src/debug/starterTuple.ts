import { api, ProblemError } from "../api/client";
import type { Json, NetworkDocument } from "../api/types";
import { isNumeric, tupleJson } from "../watch/rows";

/** The latest tuple of a stream, to be edited: its times fit those of the stream. */
export async function latestTuple(network: NetworkDocument | null, stream: string): Promise<string> {
  try {
    const { fields, rows } = await api.sample(stream, 1);
    const row = rows[rows.length - 1];
    if (row) return JSON.stringify(JSON.parse(tupleJson(fields, row)), null, 2);
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
  }
  return starterTuple(network, stream);
}

/** A tuple that fits the schema of a stream, to begin with. */
export function starterTuple(network: NetworkDocument | null, stream: string, now = new Date()): string {
  const declared = network?.streams?.[stream];
  const schema = declared && typeof declared === "object" && !Array.isArray(declared) ? declared.schema : null;
  const tuple: Record<string, Json> = {};
  for (const [name, type] of fieldsOf(schema)) tuple[name] = standard(type, now);
  return JSON.stringify(tuple, null, 2);
}

function fieldsOf(schema: Json | undefined): [string, string][] {
  if (typeof schema === "string")
    return schema.split(",").flatMap((part) => {
      const [name, type] = part.trim().split(/\s+/, 2);
      return name ? [[name, type ?? "string"] as [string, string]] : [];
    });
  if (!schema || typeof schema !== "object" || Array.isArray(schema)) return [];
  return Object.entries(schema).map(([name, type]) => [name, String(type)]);
}

function standard(type: string, now: Date): Json {
  if (isNumeric(type)) return 0;
  if (/^boolean/i.test(type)) return false;
  if (/^timestamp/i.test(type)) return now.toISOString();
  if (/^date/i.test(type)) return now.toISOString().slice(0, 10);
  return /^(string|varchar|char)/i.test(type) ? "" : null;
}
