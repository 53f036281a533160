/** What the page shows: selection, panels, theme, and requests to the canvas. */

import { create } from "zustand";

export type EntityKind =
  | "box"
  | "stream"
  | "output"
  | "arc"
  | "point"
  | "view"
  | "query"
  | "table"
  | "group";
export type Selection = { kind: EntityKind; name: string };
export type InspectorTab = "parameters" | "schema" | "statistics" | "qos" | "story";
export type BottomTab = "tuples" | "results" | "sql" | "problems" | "story" | "log" | "debug";
export type SideTab = "palette" | "outline" | "bookmarks";
export type Theme = "system" | "light" | "dark";

/** What the canvas is asked to do next; `seq` makes equal requests distinct. */
export type ViewRequest =
  | { seq: number; kind: "fit" }
  | { seq: number; kind: "center"; node: string }
  | { seq: number; kind: "goto"; x: number; y: number; zoom: number };
type NewViewRequest = { kind: "fit" } | { kind: "center"; node: string } | { kind: "goto"; x: number; y: number; zoom: number };

export type MessageTone = "ok" | "bad";
export type Csv = { text: string; name: string };

export type UiState = {
  /** The one thing that the inspector and the bottom panels are about. */
  selected: Selection | null;
  inspectorOpen: boolean;
  /** Whether the person has opened or closed the inspector; until then the first selection opens it. */
  inspectorChosen: boolean;
  inspectorTab: InspectorTab;
  bottomOpen: boolean;
  bottomTab: BottomTab;
  sideOpen: boolean;
  sideTab: SideTab;
  theme: Theme;
  searchOpen: boolean;
  deployOpen: boolean;
  view: ViewRequest | null;
  /** What came of an action that has no place of its own; null: nothing. */
  message: string | null;
  messageTone: MessageTone;
  /** Rows that a person has pasted or dropped, until it is known what becomes of them. */
  csv: Csv | null;
  /** A network that a person has dropped, until it is taken as draft or not. */
  imported: string | null;
  select: (selected: Selection | null) => void;
  openInspector: (tab: InspectorTab) => void;
  openBottom: (tab: BottomTab) => void;
  openSide: (tab: SideTab) => void;
  toggle: (panel: "inspectorOpen" | "bottomOpen" | "sideOpen") => void;
  setTheme: (theme: Theme) => void;
  setSearchOpen: (open: boolean) => void;
  setDeployOpen: (open: boolean) => void;
  ask: (request: NewViewRequest) => void;
  tell: (message: string | null, tone?: MessageTone) => void;
  offerCsv: (csv: Csv | null) => void;
  offerNetwork: (imported: string | null) => void;
};

const THEME = "auroral.theme";

function storedTheme(): Theme {
  const stored = localStorage.getItem(THEME);
  return stored === "light" || stored === "dark" ? stored : "system";
}

let seq = 0;

export const useUi = create<UiState>()((set) => ({
  selected: null,
  inspectorOpen: false,
  inspectorChosen: false,
  inspectorTab: "parameters",
  bottomOpen: false,
  bottomTab: "tuples",
  // On a narrow page the canvas comes first.
  sideOpen: window.innerWidth > 1180,
  sideTab: "palette",
  theme: storedTheme(),
  searchOpen: false,
  deployOpen: false,
  view: null,
  message: null,
  messageTone: "bad",
  csv: null,
  imported: null,
  select: (selected) => set((state) => ({ selected, inspectorOpen: state.inspectorOpen || (!state.inspectorChosen && selected !== null) })),
  openInspector: (inspectorTab) => set({ inspectorTab, inspectorOpen: true }),
  openBottom: (bottomTab) => set({ bottomTab, bottomOpen: true }),
  openSide: (sideTab) => set({ sideTab, sideOpen: true }),
  toggle: (panel) => set((state) => ({ [panel]: !state[panel], inspectorChosen: state.inspectorChosen || panel === "inspectorOpen" })),
  setTheme: (theme) => {
    localStorage.setItem(THEME, theme);
    set({ theme });
  },
  setSearchOpen: (searchOpen) => set({ searchOpen }),
  setDeployOpen: (deployOpen) => set({ deployOpen }),
  tell: (message, messageTone = "bad") => set({ message, messageTone }),
  offerCsv: (csv) => set({ csv }),
  offerNetwork: (imported) => set({ imported }),
  ask: (request) => set({ view: { ...request, seq: ++seq } }),
}));
