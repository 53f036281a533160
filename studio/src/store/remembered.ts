/** What the browser keeps over a reload: an undeployed draft, and bookmarks of people who may not change the layout. */

import type { Layout, NetworkDocument } from "../api/types";

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

const bookmarksKey = (network: string) => `auroral.bookmarks.${network}`;

export function rememberBookmarks(network: string, bookmarks: Layout["bookmarks"]): void {
  try {
    if (bookmarks.length) localStorage.setItem(bookmarksKey(network), JSON.stringify(bookmarks));
    else localStorage.removeItem(bookmarksKey(network));
  } catch {
    // They stay until the page is left.
  }
}

export function recallBookmarks(network: string): Layout["bookmarks"] {
  try {
    const found = JSON.parse(localStorage.getItem(bookmarksKey(network)) ?? "[]") as unknown;
    return Array.isArray(found) ? (found as Layout["bookmarks"]) : [];
  } catch {
    return [];
  }
}
