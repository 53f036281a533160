import { Panel } from "@xyflow/react";

import { Button } from "../components/Button";
import { useUi } from "../store/ui";
import { tidyUp } from "./actions";
import { zoomBy } from "./viewport";

/** Zoom, fit and layout, with the mouse. */
export function CanvasControls() {
  const ask = useUi((state) => state.ask);
  return (
    <Panel position="bottom-left" className="canvas-controls">
      <Button look="quiet" aria-label="Zoom in" title="Zoom in (+)" onClick={() => zoomBy("in")}>
        +
      </Button>
      <Button look="quiet" aria-label="Zoom out" title="Zoom out (−)" onClick={() => zoomBy("out")}>
        −
      </Button>
      <Button look="quiet" icon="fit" aria-label="Show everything" title="Show everything (f)" onClick={() => ask({ kind: "fit" })} />
      <Button look="quiet" aria-label="Lay out anew" title="Lay out everything anew" onClick={tidyUp}>
        Tidy
      </Button>
    </Panel>
  );
}
