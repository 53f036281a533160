/** A change report in words. */

import type { ChangeReport } from "../api/types";

export type ReportLine = { sign: "+" | "~" | "−"; name: string; text: string; careful: boolean };

/** What happens to every entity, removals and resets first: they lose something. */
export function reportLines(report: ChangeReport): ReportLine[] {
  const kept = new Set(report.kept);
  const drained = new Set(report.drained);
  const reset = new Set(report.reset);
  const fate = (name: string): { text: string; careful: boolean } => {
    if (reset.has(name)) return { text: "rebuilt; its state is reset", careful: true };
    if (drained.has(name)) return { text: "rebuilt after what it holds has left", careful: false };
    if (kept.has(name)) return { text: "rebuilt; its state is kept", careful: false };
    return { text: "rebuilt", careful: false };
  };
  const changed = new Set([...report.rebuilt, ...report.reset, ...report.drained]);
  const lines: ReportLine[] = [
    ...report.removed.map((name): ReportLine => ({ sign: "−", name, text: "removed, with what it holds", careful: true })),
    ...[...changed].map((name): ReportLine => ({ sign: "~", name, ...fate(name) })),
    ...report.added.map((name): ReportLine => ({ sign: "+", name, text: "added", careful: false })),
  ];
  return lines.sort((a, b) => Number(b.careful) - Number(a.careful));
}

export function summary(report: ChangeReport): string {
  const parts = [
    [report.added.length, "added"],
    [report.rebuilt.length, "rebuilt"],
    [report.reset.length, "with their state reset"],
    [report.removed.length, "removed"],
  ] as const;
  const said = parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return said.length ? said.join(", ") : "Nothing that runs changes.";
}
