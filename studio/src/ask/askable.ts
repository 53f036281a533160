/** What can be asked: names with their fields, and points that queries attach to. */

import { useMemo } from "react";

import type { CheckReport, NetworkDocument } from "../api/types";
import { useDeployed } from "../store/deployed";

export type Askable = {
  /** What a question may read, with its fields. */
  schema: Record<string, string[]>;
  points: string[];
  /** Arcs that nothing keeps: they can be asked once they have a connection point. */
  arcs: string[];
};

/** Connection points, views and tables of a network with their fields. */
export function askable(network: NetworkDocument | null, check: CheckReport | null): Askable {
  const schema: Record<string, string[]> = {};
  const arcs: Record<string, string[]> = {};
  for (const [arc, info] of Object.entries(check?.arcs ?? {})) arcs[arc] = info.fields.map((field) => field.name);
  const fieldsOf = (declared: unknown, key: string): string[] => {
    const arc = (declared as Record<string, unknown> | null)?.[key];
    return typeof arc === "string" ? (arcs[arc] ?? []) : [];
  };
  const points = Object.entries(network?.connection_points ?? {});
  const views = Object.entries(network?.views ?? {});
  for (const [name, declared] of points) schema[name] ??= fieldsOf(declared, "on");
  for (const [name, declared] of views) schema[name] ??= fieldsOf(declared, "from");
  for (const [name, declared] of Object.entries(network?.tables ?? {})) {
    const columns = (declared as { schema?: unknown }).schema;
    schema[name] ??= columns && typeof columns === "object" ? Object.keys(columns) : [];
  }
  return { schema, points: [...points, ...views].map(([name]) => name), arcs: Object.keys(arcs).filter((arc) => !arc.includes("@") && !(arc in schema)) };
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

/** The first arc that a query reads although nothing keeps it. */
export function unkeptArc(sql: string, arcs: string[]): string | null {
  const named = [...sql.matchAll(/\b(?:from|join)\s+`?([A-Za-z_][\w./]*)/gi)].map((match) => match[1] ?? "");
  return named.find((name) => arcs.includes(name)) ?? null;
}
