/** RFC 7396 merge patches. */

import type { Json } from "../api/types";

const isObject = (value: Json | undefined): value is { [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * `target` with the patch applied. What the patch does not mention keeps its identity, so that a
 * comparison by reference tells what has changed.
 */
export function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const before = isObject(target) ? target : {};
  const kept = Object.entries(before).filter(([key]) => patch[key] !== null);
  const changed = Object.entries(patch)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => [key, mergePatch(before[key], value)] as const);
  return Object.fromEntries([...kept, ...changed]);
}
