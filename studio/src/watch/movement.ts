/** The row that a key leads to; null if the key is no movement. */
export function nextRow(key: string, at: number | null, total: number, page: number): number | null {
  const last = total - 1;
  if (last < 0) return null;
  const moves: Record<string, number> = {
    ArrowDown: at === null ? 0 : at + 1,
    ArrowUp: at === null ? last : at - 1,
    PageDown: (at ?? 0) + page,
    PageUp: (at ?? last) - page,
    Home: 0,
    End: last,
  };
  const to = moves[key];
  return to === undefined ? null : Math.min(Math.max(to, 0), last);
}
