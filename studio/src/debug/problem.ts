import type { Problem } from "../api/types";
import { saying } from "../draft/saying";
import { useUi } from "../store/ui";

let told: string | null = null;

/** Tell above the canvas why a debugging action failed, whatever panel is open; null: the latest did not. */
export function report(problem: Problem | null): void {
  const { message, tell } = useUi.getState();
  if (problem) tell((told = saying(problem)));
  else if (told !== null && message === told) tell((told = null));
}
