import { useEffect, useState } from "react";

import { useUi } from "../store/ui";
import { ImportDialog } from "./ImportDialog";

const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;

const NETWORK = /\.(ya?ml|json)$/i;

/** Read a file of rows, or a network, and propose what becomes of it. */
export async function offerFile(file: File): Promise<void> {
  const text = await file.text();
  const { offerCsv, offerNetwork, tell } = useUi.getState();
  if (text.trim() && NETWORK.test(file.name)) offerNetwork(text);
  else if (text.trim()) offerCsv({ text, name: file.name.replace(/\.[^.]*$/, "") });
  else tell(`${file.name} is empty.`);
}

/** A CSV or a network may be dropped anywhere on the page; while one is above it, the page says so. */
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
  const imported = useUi((state) => state.imported);
  const offerNetwork = useUi((state) => state.offerNetwork);
  return (
    <>
      {over && <div className="file-drop">Drop a CSV for a stream that fits it, or a network (YAML, JSON) to import it</div>}
      {imported !== null && <ImportDialog start={imported} onClose={() => offerNetwork(null)} />}
    </>
  );
}
