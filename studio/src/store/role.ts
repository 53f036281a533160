/** What the token of this page allows. */

import type { ServerInfo } from "../api/types";
import { useSession } from "./session";

type Role = ServerInfo["role"];
const RANK: Record<Role, number> = { viewer: 0, operator: 1, editor: 2 };

/** Why this page may not do what needs a role; null if it may, or if that is not known yet. */
export function useForbidden(needed: Role): string | null {
  const role = useSession((state) => state.server?.role ?? null);
  if (role === null || RANK[role] >= RANK[needed]) return null;
  return `Needs the token of an ${needed}; this page has that of a ${role}.`.replace("an viewer", "a viewer").replace("a operator", "an operator");
}
