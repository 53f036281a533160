/** What can be asked: names with their fields, and points that queries attach to. */

import { useMemo } from "react";

import type { CheckReport, NetworkDocument } from "../api/types";
import { useDeployed } from "../store/deployed";

export type Askable = { schema: Record<string, string[]>; points: string[] };

/** Arcs, connection points, views and tables of a network with their fields. */
export function askable(network: NetworkDocument | null, check: CheckReport | null): Askable {
  const schema: Record<string, string[]> = {};
  for (const [arc, info] of Object.entries(check?.arcs ?? {}))
    if (!arc.includes("@")) schema[arc] = info.fields.map((field) => field.name);
  for (const [query, fields] of Object.entries(check?.queries ?? {}))
    schema[query] = fields.map((field) => field.name);
  const fieldsOf = (declared: unknown, key: string): string[] => {
    const arc = (declared as Record<string, unknown> | null)?.[key];
    return typeof arc === "string" ? (schema[arc] ?? []) : [];
  };
  const points = Object.entries(network?.connection_points ?? {});
  const views = Object.entries(network?.views ?? {});
  for (const [name, declared] of points) schema[name] ??= fieldsOf(declared, "on");
  for (const [name, declared] of views) schema[name] ??= fieldsOf(declared, "from");
  for (const [name, declared] of Object.entries(network?.tables ?? {})) {
    const columns = (declared as { schema?: unknown }).schema;
    schema[name] ??= columns && typeof columns === "object" ? Object.keys(columns) : [];
  }
  return { schema, points: [...points, ...views].map(([name]) => name) };
}

export function useAskable(): Askable {
  const network = useDeployed((state) => state.network);
  const check = useDeployed((state) => state.check);
  return useMemo(() => askable(network, check), [network, check]);
}

/** The point that a query reads, if it names one; else the first that there is. */
export function pointOf(sql: string, points: string[]): string | null {
  const named = [...sql.matchAll(/\b(?:from|join)\s+([A-Za-z_][\w.]*)/gi)].map((match) => match[1]);
  return points.find((point) => named.includes(point)) ?? points[0] ?? null;
}
