/** Line icons of 16 × 16, drawn with the colour of the text. */

const PATHS = {
  add: "M8 3v10M3 8h10",
  aggregate: "M2 13V9h3v4M6.5 13V3h3v10M11 13V6h3v7",
  bookmark: "M4 2h8v12l-4-3-4 3z",
  breakpoint: "M8 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8",
  bsort: "M5 3v10M2.5 10.5 5 13l2.5-2.5M10 4h4M10 8h3M10 12h2",
  bug: "M5 6h6v4a3 3 0 0 1-6 0zM6 6a2 2 0 0 1 4 0M2 5l3 2M2 9h3M3 13l2-2M14 5l-3 2M14 9h-3M13 13l-2-2",
  check: "M3 8.5 6.5 12 13 4.5",
  chevron: "M6 4l4 4-4 4",
  close: "M4 4l8 8M12 4l-8 8",
  cut: "M4 3l8 8M12 3 4 11M4.5 13a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4M11.5 13a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4",
  down: "M4 6l4 4 4-4",
  download: "M8 2v8M4.5 7 8 10.5 11.5 7M3 13.5h10",
  filter: "M2 3h12l-4.5 5.5V13l-3-1.5v-3z",
  fit: "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4",
  group: "M2 4h12v9H2zM2 4l1-2h4l1 2",
  info: "M8 7v5M8 4.2v.6M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13",
  join: "M2 3c4 0 4 5 8 5M2 13c4 0 4-5 8-5h4",
  latch: "M4 7V5a4 4 0 0 1 8 0v2M3 7h10v7H3z",
  map: "M2 5h8M7.5 2.5 10 5 7.5 7.5M14 11H6M8.5 8.5 6 11l2.5 2.5",
  moon: "M13 9.5A5.5 5.5 0 1 1 6.5 3 4.5 4.5 0 0 0 13 9.5",
  output: "M2 8h8M7 4.5 10.5 8 7 11.5M13.5 3v10",
  pause: "M5 3v10M11 3v10",
  play: "M4 2.5v11L13 8z",
  point: "M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M1 8h4M11 8h4",
  query: "M3 3h10v10H3zM3 6.5h10M6.5 6.5V13",
  read: "M2 4c2-1 4-1 6 0v9c-2-1-4-1-6 0zM14 4c-2-1-4-1-6 0v9c2-1 4-1 6 0z",
  redo: "M13 6H6a3.5 3.5 0 0 0 0 7h3M13 6l-3-3M13 6l-3 3",
  resample: "M1 11c3 0 3-7 7-7s4 7 7 7M4 14v-2M8 14V7M12 14v-3",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.5 10.5 14 14",
  step: "M3 3v10l7-5zM12.5 3v10",
  step_tuple: "M5 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6M12.5 3v10",
  stream: "M2 5c2-2 4 2 6 0s4 2 6 0M2 11c2-2 4 2 6 0s4 2 6 0",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  system: "M2 3h12v8H2zM6 14h4M8 11v3",
  table: "M2 3h12v10H2zM2 6.5h12M2 10h12M6 6.5V13",
  trash: "M3 4h10M6 4V2.5h4V4M4.5 4l.5 10h6l.5-10",
  undo: "M3 6h7a3.5 3.5 0 0 1 0 7H7M3 6l3-3M3 6l3 3",
  ungroup: "M2 4h12v9H2zM6 7l4 4M10 7l-4 4",
  union: "M2 3c5 0 3 5 8 5M2 13c5 0 3-5 8-5M2 8h12",
  update: "M11 2.5 13.5 5 6 12.5 3 13l.5-3z",
  upload: "M8 10.5v-8M4.5 6 8 2.5 11.5 6M3 13.5h10",
  view: "M1 8c2-3.5 4.5-5 7-5s5 1.5 7 5c-2 3.5-4.5 5-7 5s-5-1.5-7-5M8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4",
  wait_for: "M4 2h8M4 14h8M5 2c0 4 6 8 6 12M11 2c0 4-6 8-6 12",
  warning: "M8 2 15 14H1zM8 6.5V10M8 11.8v.4",
} as const;

export type IconName = keyof typeof PATHS;

export const isIcon = (name: string): name is IconName => name in PATHS;

/** A decorative icon: what it stands beside gives the name. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
