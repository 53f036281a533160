/** Put text on the clipboard; false if the browser does not let us. */
export async function copyText(text: string): Promise<boolean> {
  // Browsers have `navigator.clipboard` only over HTTPS and on localhost.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard) {
    try {
      await clipboard.writeText(text);
      return true;
    } catch {
      // Without the permission the older way may still work.
    }
  }
  return copySelected(text);
}

/** The older way: select the text in an element that nobody sees. */
function copySelected(text: string): boolean {
  const before = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.readOnly = true;
  area.style.position = "fixed";
  area.style.opacity = "0";
  // Behind a modal dialog nothing can be selected.
  (before?.closest("dialog") ?? document.body).append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    area.remove();
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  }
}
