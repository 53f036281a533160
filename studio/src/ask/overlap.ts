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
