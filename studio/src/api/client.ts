/** Calls of the server's REST interface. Every failure is a `ProblemError`. */

import type {
  ChangeReport,
  CheckReport,
  DebugState,
  Declaration,
  History,
  Json,
  Layout,
  LayoutChange,
  NetworkDocument,
  PaletteEntry,
  Problem,
  ServerInfo,
  Starter,
  StoryEntry,
  Table,
  TraceEntry,
} from "./types";

export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail || problem.title);
  }
}

const KEY = "auroral.token";

/** The token of the link that opened the page; it moves out of the address bar into the session. */
export function takeToken(): string | null {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem(KEY);
}

export function setToken(token: string): void {
  sessionStorage.setItem(KEY, token);
}

let refused: (problem: Problem) => void = () => undefined;

/** Call `then` whenever the server does not take the page's token, or not any more. */
export function whenRefused(then: (problem: Problem) => void): void {
  refused = then;
}

type Options = { method?: string; body?: unknown; text?: string; type?: string; match?: string; keepalive?: boolean };

async function ask(path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json" };
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (options.type) headers["Content-Type"] = options.type;
  if (options.match) headers["If-Match"] = options.match;
  const body = options.text ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  let answer: Response;
  try {
    answer = await fetch(`api/v1/${path}`, { method: options.method ?? "GET", headers, body, keepalive: options.keepalive });
  } catch {
    throw new ProblemError(plain("UNREACHABLE", "the server does not answer"));
  }
  if (answer.ok) return answer;
  const found = (await answer.json().catch(() => null)) as Problem | null;
  const problem = found ?? plain("HTTP", `${answer.status} ${answer.statusText}`);
  if (answer.status === 401 && token === sessionStorage.getItem(KEY)) refused(problem);
  throw new ProblemError(problem);
}

const plain = (code: string, detail: string): Problem => ({
  type: "about:blank",
  title: code,
  status: 0,
  detail,
  code,
});

async function json<T>(path: string, options?: Options): Promise<T> {
  const answer = await ask(path, options);
  return (answer.status === 204 ? null : await answer.json()) as T;
}

const name = encodeURIComponent;

export const api = {
  server: () => json<ServerInfo>("server"),
  /** The declared network, and its version for `deploy`. */
  network: async (): Promise<{ network: NetworkDocument; version: string }> => {
    const answer = await ask("network");
    const network = (await answer.json()) as NetworkDocument;
    return { network, version: answer.headers.get("ETag") ?? "" };
  },
  check: (network: NetworkDocument) => json<CheckReport>("check", { method: "POST", body: network }),
  preview: (network: NetworkDocument) =>
    json<ChangeReport>("network?dry_run=true", { method: "PUT", body: network }),
  /** The version that runs then. Fails with code CHANGED_MEANWHILE if the network is not `version` any more. */
  deploy: async (network: NetworkDocument, version?: string): Promise<string> => {
    const answer = await ask("network", { method: "PUT", body: network, match: version });
    return answer.headers.get("ETag") ?? "";
  },
  layout: () => json<Layout>("layout"),
  /** With `leaving` the browser sends it although the page goes. */
  changeLayout: (change: LayoutChange, leaving = false) => json<null>("layout", { method: "PATCH", body: change, keepalive: leaving }),
  schema: () => json<Json>("schema"),
  palette: () => json<PaletteEntry[]>("palette"),
  functions: () => json<{ name: string; kind: string; signature: string }[]>("functions"),
  starters: () => json<Starter[]>("starters"),
  /** A stream that fits a CSV: its name, declaration, and the rows in it. */
  infer: (csv: string, stream: string) =>
    json<{ stream: string; declaration: Declaration; rows: number }>(`infer?name=${name(stream)}`, {
      method: "POST",
      text: csv,
      type: "text/csv",
    }),
  enqueue: (stream: string, rows: Json[]) =>
    json<{ accepted: number; dead: number }>(`streams/${name(stream)}`, { method: "POST", body: rows }),
  enqueueCsv: (stream: string, csv: string) =>
    json<{ accepted: number; dead: number }>(`streams/${name(stream)}`, {
      method: "POST",
      text: csv,
      type: "text/csv",
    }),
  dequeue: (output: string, limit: number) => json<Table>(`outputs/${name(output)}?limit=${limit}`),
  setQos: (output: string, qos: Declaration | null) =>
    json<null>(`outputs/${name(output)}/qos`, { method: "PUT", body: qos }),
  addQuery: (query: string, sql: string) =>
    json<ChangeReport>("queries", { method: "POST", body: { name: query, sql } }),
  removeQuery: (query: string) => json<ChangeReport>(`queries/${name(query)}`, { method: "DELETE" }),
  attach: (point: string, query: string, since?: Json) =>
    json<{ name: string }>("attach", { method: "POST", body: { point, query, since: since ?? null } }),
  detach: (query: string) => json<null>(`attach/${name(query)}`, { method: "DELETE" }),
  replay: (point: string, since: Json, until: Json, query: string) =>
    json<{ name: string }>("replay", { method: "POST", body: { point, since, until, query } }),
  sql: (query: string) => json<Table>("sql", { method: "POST", body: { query } }),
  describe: (entity: string) => json<{ [key: string]: Json }>(`entities/${name(entity)}`),
  story: (entity: string) => json<{ entries: StoryEntry[] }>(`story/${name(entity)}`),
  sample: (arc: string, limit: number, where?: string) =>
    json<Table>(`arcs/${name(arc)}/sample?limit=${limit}${where ? `&where=${name(where)}` : ""}`),
  pointRows: (point: string, options: Record<string, string>) =>
    json<Table>(`points/${name(point)}/rows?${new URLSearchParams(options)}`),
  history: (entity: string) => json<History>(`history/${name(entity)}`),
  pause: (application: string | null) =>
    json<DebugState>("control/pause", { method: "POST", body: { application } }),
  resume: (application: string | null) =>
    json<DebugState>("control/resume", { method: "POST", body: { application } }),
  step: (kind: "train" | "tuple", application: string | null) =>
    json<{ trace: TraceEntry[]; state: DebugState }>("control/step", {
      method: "POST",
      body: { kind, application, count: 1 },
    }),
  setBreakpoint: (arc: string, condition: string | null) =>
    json<{ id: string }>("control/breakpoints", { method: "POST", body: { arc, condition } }),
  enableBreakpoint: (id: string, enabled: boolean) =>
    json<null>(`control/breakpoints/${name(id)}`, { method: "PATCH", body: { enabled } }),
  removeBreakpoint: (id: string) =>
    json<null>(`control/breakpoints/${name(id)}`, { method: "DELETE" }),
};

/** Open a WebSocket of the server; the token goes as a subprotocol, not in the address. */
export function openSocket(path: string): WebSocket {
  const at = new URL(`api/v1/${path}`, location.href);
  at.protocol = at.protocol.replace("http", "ws");
  const token = sessionStorage.getItem(KEY);
  return new WebSocket(at, token ? ["auroral", `bearer.${token}`] : ["auroral"]);
}
