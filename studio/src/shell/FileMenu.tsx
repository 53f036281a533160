import { useEffect, useRef, useState } from "react";

import { Button } from "../components/Button";
import { Icon } from "../components/Icon";
import { useEditReason } from "../store/session";
import { ImportDialog } from "./ImportDialog";
import { downloadNetwork } from "./files";
import { ShortcutsDialog } from "./ShortcutsDialog";

type Shown = "import" | "shortcuts" | null;

/** Import, export and help. */
export function FileMenu() {
  const [open, setOpen] = useState(false);
  const [shown, setShown] = useState<Shown>(null);
  const reason = useEditReason();
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const away = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    window.addEventListener("pointerdown", away);
    return () => window.removeEventListener("pointerdown", away);
  }, [open]);
  const choose = (work: () => void) => () => {
    setOpen(false);
    work();
  };
  return (
    <div className="menu-anchor" ref={box} onKeyDown={(event) => event.key === "Escape" && setOpen(false)}>
      <Button look="quiet" aria-haspopup="menu" aria-expanded={open} title="Import, export, help" onClick={() => setOpen(!open)} data-testid="file-menu">
        File
        <Icon name="down" />
      </Button>
      {open && (
        <div className="menu" role="menu">
          <Button look="quiet" role="menuitem" icon="upload" reason={reason} onClick={choose(() => setShown("import"))} data-testid="import" autoFocus>
            Import…
          </Button>
          <Button look="quiet" role="menuitem" icon="download" onClick={choose(downloadNetwork)} data-testid="export">
            Export YAML
          </Button>
          <Button look="quiet" role="menuitem" icon="info" onClick={choose(() => setShown("shortcuts"))}>
            Keyboard shortcuts
          </Button>
        </div>
      )}
      {shown === "import" && <ImportDialog onClose={() => setShown(null)} />}
      {shown === "shortcuts" && <ShortcutsDialog onClose={() => setShown(null)} />}
    </div>
  );
}
