import { Panel } from "@xyflow/react";

import { Button } from "../components/Button";
import { useLive } from "../store/live";
import { useUi } from "../store/ui";

/** Says on the canvas itself why the engine has stopped. */
export function FailedBanner() {
  const failure = useLive((state) => state.picture?.failure ?? null);
  const openBottom = useUi((state) => state.openBottom);
  if (failure === null) return null;
  return (
    <Panel position="top-center" className="failed-banner" role="alert" data-testid="failed-banner">
      <span className="status-dot dot-failed" aria-hidden="true" />
      <span>
        <strong>The engine has failed</strong> and runs nothing until the server is started again: {failure}
      </span>
      <Button onClick={() => openBottom("log")}>Log</Button>
    </Panel>
  );
}
