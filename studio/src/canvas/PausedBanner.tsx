import { Panel } from "@xyflow/react";

import { isAllPaused } from "../debug/paused";
import { useLive } from "../store/live";

/** Says on the canvas itself that nothing runs, or which applications do not. */
export function PausedBanner() {
  const stopped = useLive((state) => {
    const { picture } = state;
    if (!picture?.debug.paused) return "";
    return isAllPaused(picture) ? "everything" : picture.debug.applications.join(", ");
  });
  if (!stopped) return null;
  return (
    <>
      <div className="paused-edge" aria-hidden="true" />
      <Panel position="top-center" className="paused-banner" data-testid="paused-banner">
        <span className="status-dot dot-paused" aria-hidden="true" />
        Paused: {stopped}. <kbd>.</kbd> steps a train, <kbd>,</kbd> one tuple, <kbd>p</kbd> resumes.
      </Panel>
    </>
  );
}
