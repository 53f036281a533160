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
  const keep = <Key extends keyof SessionState>(key: Key, value: Promise<SessionState[Key]>) =>
    value.then((found) => useSession.setState({ [key]: found })).catch(() => undefined);
  // Groups are made of boxes that are there; they are not added.
  void keep("palette", api.palette().then((all) => all.filter((entry) => entry.section !== "groups")));
  void keep("schema", api.schema());
  void keep("functions", api.functions());
  void keep("starters", api.starters());
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
