/** The view follows requests of other parts, and the size of the canvas while the person has not chosen another. */

import { useStore } from "@xyflow/react";
import { useEffect } from "react";

import { useUi } from "../store/ui";
import { centerOn, fitAll, goTo, isChosen, whenPlaced } from "./viewport";

const SETTLED_MS = 250;

/** Carry out what other parts ask of the canvas: fit, centre, go to a bookmark. */
export function useViewRequests(ready: boolean): void {
  const request = useUi((state) => state.view);
  useEffect(() => {
    if (!request || !ready) return;
    if (request.kind === "fit") return whenPlaced(() => void fitAll());
    if (request.kind === "center") return centerOn(request.node);
    goTo(request);
  }, [request, ready]);
}

/** Fit again when panels or the window leave the canvas another size. */
export function useRefit(ready: boolean): void {
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  useEffect(() => {
    if (!ready || isChosen()) return;
    // A double click that opens a panel still finds what it began on.
    const timer = setTimeout(() => !isChosen() && void fitAll(), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [width, height, ready]);
}
