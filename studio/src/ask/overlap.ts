import type { Row } from "../api/types";

/** `live` without its beginning that is already the end of `before`. */
export function withoutOverlap(before: Row[], live: Row[]): Row[] {
  const text = (row: Row) => JSON.stringify(row);
  const end = before.slice(-live.length).map(text);
  const start = live.map(text);
  for (let size = end.length; size > 0; size -= 1) {
    const shared = end.slice(end.length - size).every((row, at) => row === start[at]);
    if (shared) return live.slice(size);
  }
  return live;
}

/** The rows of `again` that come after the end of `known`; null if that end is not among them. */
export function rowsAfter(known: Row[], again: Row[]): Row[] | null {
  const text = (row: Row) => JSON.stringify(row);
  const end = known.slice(-again.length).map(text);
  const now = again.map(text);
  for (let at = now.length; at > 0; at -= 1) {
    const both = Math.min(at, end.length);
    const same = end.slice(end.length - both).every((row, back) => row === now[at - both + back]);
    if (both > 0 && same) return again.slice(at);
  }
  return null;
}
