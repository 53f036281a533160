/** The draft: a network document that grows by edits until it is deployed, with its check and layout. */

import { create } from "zustand";

import { api, ProblemError } from "../api/client";
import type { CheckReport, Layout, NetworkDocument, Problem } from "../api/types";
import { difference, isDirty, same, type Difference } from "../draft/diff";
import { emptyNetwork } from "../draft/document";
import { forget, recall, recallBookmarks, remember } from "./remembered";
import { mayEdit } from "./session";

export type Positions = Layout["positions"];
type Snapshot = { draft: NetworkDocument; positions: Positions };
export type EditOptions = {
  /** Edits in a row with the same key count as one for undo, such as the letters of a text. */
  merge?: string;
  /** Where new nodes are put. */
  place?: Positions;
};

/** `automatic`: positions that nobody chose are kept on the server only together with chosen ones. */
export type LayoutOptions = { history?: boolean; automatic?: boolean };

export type DraftState = {
  loaded: boolean;
  problem: Problem | null;
  deployed: NetworkDocument;
  /** The version that the draft began from. */
  version: string;
  /** The network that runs is not the one that the draft began from. */
  outdated: boolean;
  draft: NetworkDocument;
  past: Snapshot[];
  future: Snapshot[];
  report: CheckReport | null;
  /** Why the draft as it is could not be checked: `report` is about an earlier one. */
  unchecked: Problem | null;
  layout: Layout;
  /** The layout that the server is known to have. */
  savedLayout: Layout;
  /** Positions that nobody chose. */
  placed: Positions;
  /** Why the latest deployment was refused; until the next edit. */
  refusal: Problem | null;
  diff: Difference;
  edit: (change: (document: NetworkDocument) => NetworkDocument, options?: EditOptions) => void;
  undo: () => void;
  redo: () => void;
  setLayout: (change: Partial<Layout>, options?: LayoutOptions) => void;
};

const NO_LAYOUT: Layout = { positions: {}, open: {}, bookmarks: [] };
const NOTHING: Difference = { added: [], changed: [], removed: [], engine: false, name: false };
let lastMerge: string | undefined;

export const useDraft = create<DraftState>()((set, get) => ({
  loaded: false,
  problem: null,
  deployed: emptyNetwork(),
  version: "",
  outdated: false,
  draft: emptyNetwork(),
  past: [],
  future: [],
  report: null,
  unchecked: null,
  layout: NO_LAYOUT,
  savedLayout: NO_LAYOUT,
  placed: {},
  refusal: null,
  diff: NOTHING,
  edit: (change, options = {}) => {
    if (!mayEdit()) return;
    const state = get();
    const draft = change(state.draft);
    if (draft === state.draft) return;
    const positions = options.place ? { ...state.layout.positions, ...options.place } : state.layout.positions;
    const joined = options.merge !== undefined && options.merge === lastMerge && state.future.length === 0;
    lastMerge = options.merge;
    const before = { draft: state.draft, positions: state.layout.positions };
    set({
      ...withDraft(state, draft),
      layout: { ...state.layout, positions },
      past: joined ? state.past : [...state.past, before],
      future: [],
    });
  },
  undo: () => {
    const { past, future } = get();
    const before = past.at(-1);
    if (before) set({ ...restored(get(), before), past: past.slice(0, -1), future: [snapshot(get()), ...future] });
  },
  redo: () => {
    const { past, future } = get();
    const [after, ...rest] = future;
    if (after) set({ ...restored(get(), after), past: [...past, snapshot(get())], future: rest });
  },
  setLayout: (change, options) => {
    const state = get();
    if (options?.history) lastMerge = undefined;
    const kept = options?.history ? { past: [...state.past, snapshot(state)], future: [] } : {};
    const placed = options?.automatic ? { placed: { ...state.placed, ...change.positions } } : {};
    set({ layout: { ...state.layout, ...change }, ...kept, ...placed });
  },
}));

const snapshot = (state: DraftState): Snapshot => ({ draft: state.draft, positions: state.layout.positions });

function restored(state: DraftState, to: Snapshot): Partial<DraftState> {
  lastMerge = undefined;
  return { ...withDraft(state, to.draft), layout: { ...state.layout, positions: to.positions } };
}

function withDraft(state: DraftState, draft: NetworkDocument): Partial<DraftState> {
  return { draft, diff: difference(state.deployed, draft), refusal: null };
}

// ── what follows from a change: check, kept draft ──

/** Run after `ms` without another call. */
export function settled(ms: number, work: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, ms);
  };
}

let checks = 0;

export async function checkNow(): Promise<void> {
  const number = ++checks;
  try {
    const report = await api.check(useDraft.getState().draft);
    if (number === checks) useDraft.setState({ report, unchecked: null });
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    if (number === checks) useDraft.setState({ unchecked: error.problem });
  }
}

const checkSoon = settled(150, () => void checkNow());

/** The server is there again: ask what it could not answer. */
export function checkAgain(): void {
  if (useDraft.getState().unchecked) checkSoon();
}

function rememberNow(): void {
  const { draft, version, diff, deployed, loaded } = useDraft.getState();
  if (!loaded) return;
  if (isDirty(diff)) remember({ network: deployed.network, version, draft });
  else forget(deployed.network);
}
const rememberSoon = settled(300, rememberNow);
window.addEventListener("pagehide", rememberNow);

let restoring = false;
useDraft.subscribe((state, before) => {
  if (restoring || state.draft === before.draft) return;
  checkSoon();
  rememberSoon();
});

// ── loading ──

type Asked = Promise<[{ network: NetworkDocument; version: string }, Layout]>;

/** Ask for network and layout; may be called before it is known whether the server takes the token. */
export function askNetwork(): Asked {
  const asked: Asked = Promise.all([
    api.network(),
    api.layout().catch(() => NO_LAYOUT),
  ]);
  asked.catch(() => undefined);
  return asked;
}

/** Load network and layout. An undeployed draft of this network that the browser kept goes on; one that is discarded can be brought back by undo. */
export async function loadDraft(options: { discard?: boolean; asked?: Asked } = {}): Promise<void> {
  try {
    const [{ network, version }, found] = await (options.asked ?? askNetwork());
    const layout: Layout = { positions: found.positions ?? {}, open: found.open ?? {}, bookmarks: found.bookmarks ?? [] };
    const own = mayEdit() ? [] : recallBookmarks(network.network);
    const bookmarks = [...layout.bookmarks.filter((mark) => !own.some((each) => each.name === mark.name)), ...own];
    const kept = options.discard ? null : recall(network.network);
    const goesOn = kept !== null && mayEdit() && !same(kept.draft, network);
    const before = useDraft.getState();
    const history = options.discard && before.loaded && !same(before.draft, network) ? [...before.past, snapshot(before)] : [];
    restoring = true;
    useDraft.setState({
      loaded: true,
      problem: null,
      deployed: network,
      version: goesOn ? kept.version : version,
      outdated: goesOn && kept.version !== version,
      draft: goesOn ? kept.draft : network,
      diff: goesOn ? difference(network, kept.draft) : NOTHING,
      layout: { ...layout, bookmarks },
      savedLayout: layout,
      placed: {},
      refusal: null,
      past: history,
      future: [],
    });
    restoring = false;
    lastMerge = undefined;
    if (options.discard) forget(network.network);
    await checkNow();
  } catch (error) {
    restoring = false;
    if (!(error instanceof ProblemError)) throw error;
    useDraft.setState({ problem: error.problem });
  }
}

/** The network that runs has another version: follow it, or say so if there is a draft. */
export async function followDeployed(version: string): Promise<void> {
  const state = useDraft.getState();
  if (!state.loaded || version === state.version || state.outdated) return;
  const found = await api.network().catch(() => null);
  if (!found || found.version === useDraft.getState().version) return;
  const { draft, diff } = useDraft.getState();
  const left = difference(found.network, draft);
  // A draft that others have deployed as it is, is no draft any more.
  if (isDirty(diff) && isDirty(left)) {
    useDraft.setState({ deployed: found.network, diff: left, outdated: true });
  } else {
    useDraft.setState({ deployed: found.network, version: found.version, draft: found.network, diff: NOTHING, refusal: null });
  }
}

/** After a deployment of `sent` as `version`: the draft is what runs; edits that were made meanwhile stay. */
export async function adoptDeployed(sent: NetworkDocument, version: string): Promise<void> {
  // The server may write the same network in another form. If it does not say so now, it has what was sent.
  const found = await api.network().catch((error: unknown) => {
    if (error instanceof ProblemError) return { network: sent, version };
    throw error;
  });
  const { draft } = useDraft.getState();
  const now = draft === sent ? found.network : draft;
  useDraft.setState({
    deployed: found.network,
    version: found.version,
    outdated: false,
    refusal: null,
    draft: now,
    diff: difference(found.network, now),
  });
  rememberSoon();
}

/** Run the draft as it is; fails if somebody else has changed the network since it began. */
export async function deployDraft(): Promise<void> {
  const { draft, version } = useDraft.getState();
  await adoptDeployed(draft, await api.deploy(draft, version));
}
