/** Lines of a chart, and how they are told apart without colours, which mean state (pure). */

export type ChartSeries = { label: string; values: (number | null)[] };

const DASHES = [[], [6, 3], [2, 2], [10, 3, 2, 3]];

/** So many lines can be told apart. */
export const MOST_LINES = 2 * DASHES.length;

/** How a line is drawn: four dashes thin, then the same four thick and lighter. */
export function lineStyle(index: number): { dash: number[]; width: number; tone: "--text" | "--muted" | "--line-strong" } {
  const dash = DASHES[index % DASHES.length] ?? [];
  if (index < DASHES.length) return { dash, width: 1.5, tone: index ? "--muted" : "--text" };
  return { dash: dash.map((part) => part * 1.5), width: 3.5, tone: "--line-strong" };
}
