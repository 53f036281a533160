import { useEffect, useRef, useState, type KeyboardEvent, type MouseEvent, type PointerEvent } from "react";

import { addPoint, gridStep, movePoint, RULES, type Graph, type GraphKind, type Point } from "./graph";
import { GraphBackground } from "./GraphBackground";
import { graphPath } from "./GraphSpark";
import { keyed } from "./keyed";
import type { Observed } from "./observed";
import { domainOf, HEIGHT, screenX, screenY, valueX, valueY, WIDTH, type Domain } from "./scale";

type Props = {
  kind: GraphKind;
  graph: Graph;
  observed: Observed[GraphKind];
  /** The graph while a point is dragged; null when the drag is given up. */
  onDrag: (graph: Graph | null) => void;
  /** Steps of a point by keys in a row have the same `merge`. */
  onChange: (graph: Graph, merge?: string) => void;
};

/** A utility graph whose points are dragged, or moved by arrow keys. */
export function GraphEditor({ kind, graph, observed, onDrag, onChange }: Props) {
  const svg = useRef<SVGSVGElement>(null);
  const [drag, setDrag] = useState<{ at: number; domain: Domain; graph: Graph } | null>(null);
  const domain = drag?.domain ?? domainOf(graph, kind, observed);
  const shown = drag?.graph ?? graph;
  const step = gridStep(domain.high - domain.low);

  const place = (event: MouseEvent): Point => {
    const box = svg.current?.getBoundingClientRect();
    if (!box) return [0, 0];
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const y = ((event.clientY - box.top) / box.height) * HEIGHT;
    return [valueX(x, domain), valueY(y)];
  };
  const press = (event: PointerEvent<SVGGElement>, at: number) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    setDrag({ at, domain, graph });
  };
  const move = (event: PointerEvent) => {
    if (!drag) return;
    const moved = movePoint(drag.graph, drag.at, place(event), kind, step);
    setDrag({ ...drag, graph: moved });
    onDrag(moved);
  };
  const drop = () => {
    if (!drag) return;
    setDrag(null);
    onDrag(null);
    if (JSON.stringify(drag.graph) !== JSON.stringify(graph)) onChange(drag.graph);
  };
  const giveUp = () => {
    if (!drag) return;
    setDrag(null);
    onDrag(null);
  };
  useEscape(drag !== null, giveUp);
  const add = (event: MouseEvent) => {
    const grown = addPoint(graph, place(event), kind, step);
    if (grown) onChange(grown.graph);
  };
  const key = (event: KeyboardEvent, at: number) => {
    const changed = keyed(event.key, event.shiftKey, graph, at, kind, domain);
    if (!changed) return;
    event.preventDefault();
    event.stopPropagation();
    onChange(changed, event.key.startsWith("Arrow") ? `point ${at}` : undefined);
  };
  return (
    <svg
      ref={svg}
      className="qos-graph"
      data-testid="qos-graph"
      data-kind={kind}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="group"
      aria-label={`${RULES[kind].title} graph: utility by ${RULES[kind].axis}. Double click adds a point.`}
      onDoubleClick={add}
    >
      <GraphBackground kind={kind} domain={domain} observed={observed} />
      <path className="qos-line" d={graphPath(shown, domain.low, domain.high, (x) => screenX(x, domain), screenY)} />
      {shown.map((point, at) => (
        <g
          key={at}
          className="qos-point"
          data-testid={`qos-point-${kind}-${at}`}
          tabIndex={0}
          role="slider"
          aria-label={`point ${at + 1} of ${shown.length}`}
          aria-valuenow={point[1]}
          aria-valuemin={0}
          aria-valuemax={1}
          aria-valuetext={`${RULES[kind].axis} ${point[0]}, utility ${point[1]}`}
          transform={`translate(${screenX(point[0], domain)} ${screenY(point[1])})`}
          onPointerDown={(event) => press(event, at)}
          onPointerMove={move}
          onPointerUp={drop}
          onPointerCancel={giveUp}
          onDoubleClick={(event) => event.stopPropagation()}
          onKeyDown={(event) => key(event, at)}
        >
          <circle className="qos-reach" r="14" />
          <circle className="qos-dot" r="5" />
        </g>
      ))}
      {drag && <Reading point={drag.graph[drag.at] ?? [0, 0]} unit={RULES[kind].unit} domain={domain} />}
    </svg>
  );
}

/** While it is `active`, Escape means this and nothing else. */
function useEscape(active: boolean, escape: () => void): void {
  const latest = useRef(escape);
  useEffect(() => {
    latest.current = escape;
  });
  useEffect(() => {
    if (!active) return;
    const press = (event: globalThis.KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      latest.current();
    };
    window.addEventListener("keydown", press, true);
    return () => window.removeEventListener("keydown", press, true);
  }, [active]);
}

function Reading({ point, unit, domain }: { point: Point; unit: string; domain: Domain }) {
  const right = screenX(point[0], domain) > WIDTH * 0.7;
  return (
    <text
      className="qos-reading"
      x={screenX(point[0], domain) + (right ? -10 : 10)}
      y={Math.max(screenY(point[1]) - 8, 10)}
      textAnchor={right ? "end" : "start"}
    >
      {`${point[0]}${unit ? ` ${unit}` : ""} → ${point[1].toFixed(2)}`}
    </text>
  );
}
