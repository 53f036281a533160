/** An undeployed draft in the browser, so that reloading the page does not lose it. */

import type { NetworkDocument } from "../api/types";

type Remembered = { network: string; version: string; draft: NetworkDocument };

const key = (network: string) => `auroral.draft.${network}`;

export function remember(draft: Remembered): void {
  try {
    localStorage.setItem(key(draft.network), JSON.stringify(draft));
  } catch {
    // A full or forbidden storage costs the copy, not the draft.
  }
}

export function forget(network: string): void {
  localStorage.removeItem(key(network));
}

export function recall(network: string): Remembered | null {
  const text = localStorage.getItem(key(network));
  if (!text) return null;
  try {
    const found = JSON.parse(text) as Remembered;
    return typeof found.draft === "object" && found.draft !== null ? found : null;
  } catch {
    return null;
  }
}
