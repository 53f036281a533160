import type { Picture } from "../api/types";

type Paused = Pick<Picture, "debug" | "outputs">;

/** Whether nothing runs: the server says `paused` also while only some applications are. */
export function isAllPaused({ debug, outputs }: Paused): boolean {
  const { paused, applications } = debug;
  return paused && (!applications.length || Object.keys(outputs).every((name) => applications.includes(name)));
}

/** Whether the chosen application (or everything) is paused. */
export function isPaused(picture: Paused | null, application: string | null): boolean {
  if (!picture) return false;
  return isAllPaused(picture) || (application !== null && picture.debug.applications.includes(application));
}
