/** A merge patch cannot carry null: what is null in a picture arrives as missing, and is put back here. */

import type { Picture } from "../api/types";

const PICTURE = ["failure", "utility", "step_s", "memory_bytes"] as const;
const FIGURES = {
  arcs: ["oldest_s", "patience_s"],
  boxes: ["selectivity", "cost_s", "call_s", "held", "superbox", "priority", "halted"],
  outputs: ["lag_s", "utility", "latency_s", "latency_p95_s", "qos", "loss", "value", "good_zone", "failed"],
  points: ["oldest"],
  queries: ["failed"],
} as const;

/** A value with null for each key that it lacks; the same value if it lacks none. */
function filled<T extends object>(value: T, keys: readonly string[]): T {
  const missing = keys.filter((key) => !(key in value));
  return missing.length ? { ...value, ...Object.fromEntries(missing.map((key) => [key, null])) } : value;
}

/** A picture in which every key is there. What lacks nothing keeps its identity. */
export function completePicture(picture: Picture): Picture {
  const found: Record<string, unknown> = { ...filled(picture, PICTURE) };
  for (const [section, keys] of Object.entries(FIGURES)) {
    const before = (found[section] ?? {}) as Record<string, object>;
    const lacking = Object.entries(before).filter(([, figures]) => keys.some((key) => !(key in figures)));
    if (lacking.length || !found[section])
      found[section] = { ...before, ...Object.fromEntries(lacking.map(([name, one]) => [name, filled(one, keys)])) };
  }
  found.debug = filled(picture.debug ?? { paused: false, applications: [], breakpoints: [], trace: [] }, ["hit"]);
  return found as unknown as Picture;
}
