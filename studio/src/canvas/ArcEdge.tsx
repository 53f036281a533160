import { BaseEdge, EdgeLabelRenderer, getBezierPath, type EdgeProps } from "@xyflow/react";
import { memo } from "react";

import { Icon } from "../components/Icon";
import { useLive } from "../store/live";
import { useArcLook, type ArcLook } from "../watch/arcLook";
import { useDrops } from "../watch/DropMarks";
import { useUi } from "../store/ui";
import { useGhosts, type Ghost } from "../watch/moves";
import { useFlow, type FlowEdge } from "./flow";
import { useModel } from "./model";
import { heightOf, type SceneEdge } from "./scene";

/** An arc: thick by rate, coloured by pressure, with its queue, breakpoint and drop box on it. */
export const ArcEdge = memo(function ArcEdge(props: EdgeProps<FlowEdge>) {
  const { id, selected, data } = props;
  const edge = data?.edge;
  const arc = edge?.arc ?? "";
  const look = useArcLook(arc, edge?.targets);
  const [path, x, y] = getBezierPath(props);
  const target = useFlow((state) => state.target === id);
  const deployed = useModel((state) => state.changes.get(edge?.target ?? "") !== "added" && state.changes.get(edge?.source ?? "") !== "added");
  const tone = deployed ? look.tone : "idle";
  const classes = `arc tone-line-${deployed ? look.line : "idle"} ${selected ? "selected" : ""} ${edge?.implied ? "implied" : ""} ${deployed ? "" : "draft"} ${target ? "target" : ""}`;
  return (
    <>
      <BaseEdge id={id} path={path} interactionWidth={20} className={classes} style={{ strokeWidth: selected || target ? look.width + 1 : look.width }} data-testid={`edge-${id}`} />
      {look.title && (
        <path d={path} className="arc-title" aria-hidden="true">
          <title>{look.title}</title>
        </path>
      )}
      {edge && <ArcMarks edge={edge} middle={{ x, y }} source={{ x: props.sourceX, y: props.sourceY }} target={{ x: props.targetX, y: props.targetY }} look={{ ...look, tone }} />}
    </>
  );
});

type Point = { x: number; y: number };
type MarksProps = { edge: SceneEdge; middle: Point; source: Point; target: Point; look: ArcLook };

/** A drop box stands where its superbox reads the arc. */
function useDrop(arc: string, target: string) {
  const superbox = useLive((state) => state.picture?.boxes[target]?.superbox ?? target);
  return useDrops().find((one) => one.arc === arc && one.superbox === superbox);
}

function useBreakpoint(arc: string) {
  return useLive((state) => {
    const found = state.picture?.debug.breakpoints.find((one) => one.arc === arc);
    return found ? { condition: found.condition, enabled: found.enabled, hit: state.picture?.debug.hit?.breakpoint === found.id } : null;
  });
}

/**
 * What stands on an arc. Queue and breakpoint are those of the arc: of several edges the first has them, at the source.
 * A drop box and what the optimiser moved stand before what reads.
 */
function ArcMarks({ edge, middle, source, target, look }: MarksProps) {
  const breakpoint = useBreakpoint(edge.arc);
  const drop = useDrop(edge.arc, edge.target);
  const ghosts = useGhosts(edge.target, edge.index);
  const own = edge.first && (breakpoint || look.queue);
  if (!own && !drop && !ghosts.length) return null;
  const at = edge.shared ? { x: source.x + 32, y: source.y } : middle;
  return (
    <EdgeLabelRenderer>
      {own && (
        <div className="arc-marks" style={{ transform: `translate(-50%, -50%) translate(${at.x}px, ${at.y}px)` }}>
          {breakpoint && (
            <span className={`arc-break ${breakpoint.enabled ? "" : "off"} ${breakpoint.hit ? "hit" : ""}`} title={`breakpoint${breakpoint.condition ? `: ${breakpoint.condition}` : ""}`}>
              <span className="dot" aria-hidden="true" />
              {breakpoint.condition ? <span className="arc-condition">{breakpoint.condition}</span> : <span className="hidden-text">breakpoint</span>}
            </span>
          )}
          {look.queue && (
            <span className={`arc-queue tone-${look.tone}`} title={look.title}>
              <span>{look.queue}</span>
              {look.age && <span className="arc-age">{look.age}</span>}
            </span>
          )}
        </div>
      )}
      {drop && (
        <div className="arc-marks" style={{ transform: `translate(-100%, -100%) translate(${target.x - 6}px, ${target.y - 6}px)` }}>
          <span className="arc-drop" title={`The load shedder drops ${Math.round(drop.rate * 100)} %${drop.interval ? ` where ${drop.interval}` : ""} for ${drop.outputs.join(", ")}; ${drop.dropped} so far`} data-testid={`drop-${edge.arc}-${edge.target}`}>
            <Icon name="cut" />
            {Math.round(drop.rate * 100)} %
          </span>
        </div>
      )}
      {ghosts.length > 0 && <Ghosts ghosts={ghosts} edge={edge} target={target} />}
    </EdgeLabelRenderer>
  );
}

/** What runs in front of an input stands above the card, or below it for another input than the first: beside the card are ports of others. */
function Ghosts({ ghosts, edge, target }: { ghosts: Ghost[]; edge: SceneEdge; target: Point }) {
  const info = useModel((state) => (edge.to === edge.target ? (state.graph.nodes.get(edge.target) ?? null) : null));
  const { top, bottom } = heightOf(info, edge.targetPort, target.y);
  const place = edge.index ? `translate(${target.x}px, ${bottom + 2}px)` : `translate(0, -100%) translate(${target.x}px, ${top - 2}px)`;
  return (
    <div className="arc-marks ghosts" style={{ transform: place }}>
      {ghosts.map((ghost) => (
        <button key={ghost.box} type="button" className="arc-ghost" title={`${ghost.box} runs here: ${ghost.text}`} onClick={() => tellStory(ghost.box)} data-testid={`ghost-${ghost.box}`}>
          <Icon name="filter" />
          {ghost.box}
        </button>
      ))}
    </div>
  );
}

/** Select a box, and open its story. */
function tellStory(name: string): void {
  useUi.getState().select({ kind: "box", name });
  useUi.getState().openInspector("story");
}

export const edgeTypes = { arc: ArcEdge };
