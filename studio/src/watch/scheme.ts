import { useSyncExternalStore } from "react";

import { useUi } from "../store/ui";

const dark = typeof matchMedia === "undefined" ? null : matchMedia("(prefers-color-scheme: dark)");

function subscribe(changed: () => void): () => void {
  dark?.addEventListener("change", changed);
  return () => dark?.removeEventListener("change", changed);
}

/** "light" or "dark", by the person's choice or the system's; canvases are drawn again when it changes. */
export function useScheme(): "light" | "dark" {
  const system = useSyncExternalStore(subscribe, () => (dark?.matches ? "dark" : "light"));
  const theme = useUi((state) => state.theme);
  return theme === "system" ? system : theme;
}
