/** What the server is and offers: asked for once, when the page has a token that the server takes. */

import { create } from "zustand";

import { api, ProblemError, setToken, whenRefused } from "../api/client";
import type { Json, PaletteEntry, Problem, ServerInfo, Starter } from "../api/types";

export type SqlFunction = { name: string; kind: string; signature: string };

export type SessionState = {
  phase: "starting" | "token" | "ready" | "failed";
  problem: Problem | null;
  server: ServerInfo | null;
  palette: PaletteEntry[];
  functions: SqlFunction[];
  starters: Starter[];
  schema: Json;
};

export const useSession = create<SessionState>()(() => ({
  phase: "starting",
  problem: null,
  server: null,
  palette: [],
  functions: [],
  starters: [],
  schema: {},
}));

// Groups are made of boxes that are there; they are not added.
const OFFERS = {
  palette: () => api.palette().then((all) => all.filter((entry) => entry.section !== "groups")),
  schema: () => api.schema(),
  functions: () => api.functions(),
  starters: () => api.starters(),
};
type Offer = keyof typeof OFFERS;
const RETRY_MS = [1000, 2000, 4000, 8000, 15_000];
/** Counts sessions: attempts for an earlier one end. */
let offers = 0;

/** Ask for what the server offers; what it does not answer is asked for again until it does. */
async function loadOffers(session: number, wanted: Offer[], attempt = 0): Promise<void> {
  const missing: Offer[] = [];
  const load = async (key: Offer) => {
    try {
      useSession.setState({ [key]: await OFFERS[key]() });
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      missing.push(key);
    }
  };
  await Promise.all(wanted.map(load));
  if (!missing.length) return;
  const again = () => {
    if (session === offers && useSession.getState().phase === "ready") void loadOffers(session, missing, attempt + 1);
  };
  setTimeout(again, RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)]);
}

whenRefused((problem) => useSession.setState({ phase: "token", problem }));

/** Ask the server who we are and what there is; the canvas waits for the first answer only. */
export async function startSession(): Promise<boolean> {
  try {
    const server = await api.server();
    useSession.setState({ server, phase: "ready", problem: null });
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const refused = error.problem.status === 401 || error.problem.status === 403;
    useSession.setState({ phase: refused ? "token" : "failed", problem: error.problem });
    return false;
  }
  offers += 1;
  void loadOffers(offers, Object.keys(OFFERS) as Offer[]);
  return true;
}

export function keepToken(token: string): void {
  setToken(token.trim());
}

/** Why this person cannot change the network; null if they can. */
export function editReason(server: ServerInfo | null): string | null {
  if (!server) return "The server has not answered yet.";
  return server.role === "editor" ? null : `Your token is for a ${server.role}: changing the network needs an editor's.`;
}

export const useEditReason = (): string | null => useSession((state) => editReason(state.server));
export const mayEdit = (): boolean => editReason(useSession.getState().server) === null;
