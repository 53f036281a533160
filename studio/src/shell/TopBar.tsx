import { Boundary } from "../components/Boundary";
import { Button } from "../components/Button";
import { DebugControls } from "../debug/DebugControls";
import { isDirty, type Difference } from "../draft/diff";
import { useDraft } from "../store/draft";
import { useEditReason } from "../store/session";
import { useUi, type Theme } from "../store/ui";
import { StatusBar } from "../watch/StatusBar";
import { FileMenu } from "./FileMenu";

const NEXT_THEME: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const THEME_ICON = { system: "system", light: "sun", dark: "moon" } as const;

function ThemeButton() {
  const theme = useUi((state) => state.theme);
  const setTheme = useUi((state) => state.setTheme);
  return (
    <Button look="quiet" icon={THEME_ICON[theme]} aria-label={`Theme: ${theme}`} title={`Theme: ${theme}`} onClick={() => setTheme(NEXT_THEME[theme])} data-testid="theme" />
  );
}

function changeText(diff: Difference): string {
  const engine = diff.engine || diff.name ? 1 : 0;
  return `+${diff.added.length} ~${diff.changed.length + engine} −${diff.removed.length}`;
}

function DraftControls() {
  const { diff, past, future, undo, redo } = useDraft();
  const reason = useEditReason();
  const setDeployOpen = useUi((state) => state.setDeployOpen);
  const dirty = isDirty(diff);
  const nothing = dirty ? null : "The draft is what runs.";
  return (
    <>
      <Button look="quiet" icon="undo" aria-label="Undo" title="Undo (Ctrl+Z)" disabled={!past.length} reason={reason} onClick={undo} data-testid="undo" />
      <Button look="quiet" icon="redo" aria-label="Redo" title="Redo (Ctrl+Shift+Z)" disabled={!future.length} reason={reason} onClick={redo} data-testid="redo" />
      <span className={`draft-count ${dirty ? "dirty" : ""}`} title="added, changed, removed against what runs" data-testid="draft-count">
        {dirty ? (
          <>
            <span className="draft-word">Draft</span> <span className="mono">{changeText(diff)}</span>
          </>
        ) : (
          "Deployed"
        )}
      </span>
      <Button look="primary" title="Deploy (Ctrl+S)" reason={reason ?? nothing} onClick={() => setDeployOpen(true)} data-testid="deploy">
        Deploy
      </Button>
    </>
  );
}

/** Name and state of the network, debugging, draft, theme. */
export function TopBar() {
  const network = useDraft((state) => state.draft.network);
  const setSearchOpen = useUi((state) => state.setSearchOpen);
  return (
    <header className="top-bar">
      <h1 className="brand" title={network}>
        <span className="brand-product">auroral</span> <span className="brand-network">{network}</span>
      </h1>
      <Boundary label="state">
        <StatusBar />
      </Boundary>
      <div className="top-space" />
      <Boundary label="controls" quiet>
        <DebugControls />
      </Boundary>
      <Button look="quiet" icon="search" aria-label="Search" title="Search (Ctrl+K)" onClick={() => setSearchOpen(true)} data-testid="search-open" />
      <FileMenu />
      <span className="top-rule" aria-hidden="true" />
      <DraftControls />
      <ThemeButton />
    </header>
  );
}
