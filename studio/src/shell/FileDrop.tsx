import { useEffect, useState } from "react";

import { useUi } from "../store/ui";

const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;

/** Read a file of rows and propose what becomes of it. */
export async function offerFile(file: File): Promise<void> {
  const text = await file.text();
  const { offerCsv, tell } = useUi.getState();
  if (text.trim()) offerCsv({ text, name: file.name.replace(/\.[^.]*$/, "") });
  else tell(`${file.name} is empty.`);
}

/** A CSV may be dropped anywhere on the page; while one is above it, the page says so. */
export function FileDrop() {
  const [over, setOver] = useState(false);
  useEffect(() => {
    let depth = 0;
    const enter = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      depth += 1;
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      depth -= 1;
      setOver(depth > 0);
    };
    // Without this the browser would open the file in the place of the page.
    const above = (event: DragEvent) => {
      if (hasFiles(event)) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      depth = 0;
      setOver(false);
      const file = event.dataTransfer?.files[0];
      if (file) void offerFile(file);
    };
    const listeners = { dragenter: enter, dragleave: leave, dragover: above, drop };
    const each = Object.entries(listeners) as [keyof typeof listeners, (event: DragEvent) => void][];
    for (const [name, listener] of each) window.addEventListener(name, listener);
    return () => {
      for (const [name, listener] of each) window.removeEventListener(name, listener);
    };
  }, []);
  return over ? <div className="file-drop">Drop the CSV: a stream that fits it will be proposed</div> : null;
}
