import { BaseEdge, EdgeLabelRenderer, getBezierPath, type EdgeProps } from "@xyflow/react";
import { memo } from "react";

import { Icon } from "../components/Icon";
import { useDraft } from "../store/draft";
import { useLive } from "../store/live";
import { useArcLook } from "../watch/arcLook";
import { useDrops } from "../watch/DropMarks";
import { useFlow, type FlowEdge } from "./flow";

/** An arc: thick by rate, coloured by pressure, with its queue, breakpoint and drop box on it. */
export const ArcEdge = memo(function ArcEdge(props: EdgeProps<FlowEdge>) {
  const { id, selected, data } = props;
  const edge = data?.edge;
  const arc = edge?.arc ?? "";
  const look = useArcLook(arc);
  const [path, x, y] = getBezierPath(props);
  const target = useFlow((state) => state.target === id);
  const deployed = useDraft((state) => !state.diff.added.some((ref) => ref.name === edge?.target.replace(/^output:/, "") || ref.name === edge?.source));
  const tone = deployed ? look.tone : "idle";
  const classes = `arc tone-line-${tone} ${selected ? "selected" : ""} ${edge?.implied ? "implied" : ""} ${deployed ? "" : "draft"} ${target ? "target" : ""}`;
  return (
    <>
      <BaseEdge id={id} path={path} interactionWidth={20} className={classes} style={{ strokeWidth: selected || target ? look.width + 1 : look.width }} data-testid={`edge-${id}`} />
      {look.title && (
        <path d={path} className="arc-title" aria-hidden="true">
          <title>{look.title}</title>
        </path>
      )}
      <ArcMarks arc={arc} target={edge?.target ?? ""} x={x} y={y} label={look.label} tone={tone} />
    </>
  );
});

type MarksProps = { arc: string; target: string; x: number; y: number; label: string; tone: string };

/** A drop box stands where its superbox reads the arc. */
function useDrop(arc: string, target: string) {
  const superbox = useLive((state) => state.picture?.boxes[target]?.superbox ?? target);
  return useDrops().find((one) => one.arc === arc && one.superbox === superbox);
}

function ArcMarks({ arc, target, x, y, label, tone }: MarksProps) {
  const breakpoint = useLive((state) => {
    const found = state.picture?.debug.breakpoints.find((one) => one.arc === arc);
    return found ? { condition: found.condition, enabled: found.enabled, hit: state.picture?.debug.hit?.breakpoint === found.id } : null;
  });
  const drop = useDrop(arc, target);
  if (!breakpoint && !drop && !label) return null;
  return (
    <EdgeLabelRenderer>
      <div className="arc-marks" style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}>
        {breakpoint && (
          <span className={`arc-break ${breakpoint.enabled ? "" : "off"} ${breakpoint.hit ? "hit" : ""}`} title={`breakpoint${breakpoint.condition ? `: ${breakpoint.condition}` : ""}`}>
            <span className="dot" aria-hidden="true" />
            {breakpoint.condition ?? <span className="hidden-text">breakpoint</span>}
          </span>
        )}
        {drop && (
          <span className="arc-drop" title={`The load shedder drops ${Math.round(drop.rate * 100)} %${drop.interval ? ` where ${drop.interval}` : ""} for ${drop.outputs.join(", ")}; ${drop.dropped} so far`}>
            <Icon name="cut" />
            {Math.round(drop.rate * 100)} %
          </span>
        )}
        {label && <span className={`arc-queue tone-${tone}`}>{label}</span>}
      </div>
    </EdgeLabelRenderer>
  );
}

export const edgeTypes = { arc: ArcEdge };
