import type { Json } from "../api/types";

/** Rows of JSON text, and what is wrong with it. */
export function readRows(text: string): { rows: Json[]; problem: string | null } {
  try {
    const found = JSON.parse(text) as Json;
    const rows = Array.isArray(found) ? found : [found];
    const good = rows.every((row) => typeof row === "object" && row !== null && !Array.isArray(row));
    if (!good || rows.length === 0) return { rows: [], problem: "A tuple is an object such as {\"machine\": \"press\"}." };
    return { rows, problem: null };
  } catch (error) {
    return { rows: [], problem: error instanceof Error ? error.message : String(error) };
  }
}
