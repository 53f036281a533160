/** Light or dark: by the system's choice, or as the person has chosen. */

import { useUi, type Theme } from "../store/ui";

const dark = window.matchMedia("(prefers-color-scheme: dark)");

function apply(theme: Theme): void {
  document.documentElement.dataset.theme = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
}

/** Keep the page's `data-theme` in step with the choice. */
export function startTheme(): void {
  apply(useUi.getState().theme);
  dark.addEventListener("change", () => apply(useUi.getState().theme));
  useUi.subscribe((state, before) => {
    if (state.theme !== before.theme) apply(state.theme);
  });
}
