import type { Json } from "../api/types";

/** Text as the value it means: nothing, a number, or text such as a timestamp. */
export function scalar(text: string): Json {
  const trimmed = text.trim();
  if (!trimmed) return null;
  return /^-?\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : trimmed;
}
