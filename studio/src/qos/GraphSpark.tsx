import { useQos } from "./declared";
import { DEFAULT_LATENCY, graphOf, utilityAt, type Graph } from "./graph";

const WIDTH = 32;
const HEIGHT = 16;

/** An output's latency graph in miniature, with the present delay as a point on it. */
export function GraphSpark({ output, x }: { output: string; x: number | null }) {
  const qos = useQos(output);
  const graph = graphOf(qos, "latency") ?? DEFAULT_LATENCY;
  const widest = (graph[graph.length - 1]?.[0] ?? 1) * 1.1 || 1;
  const px = (at: number) => 1 + (Math.min(at, widest) / widest) * (WIDTH - 2);
  const py = (at: number) => HEIGHT - 1.5 - at * (HEIGHT - 3);
  return (
    <svg className="graph-spark" width={WIDTH} height={HEIGHT} aria-hidden="true">
      <path d={graphPath(graph, 0, widest, px, py)} />
      {x !== null && <circle cx={px(x)} cy={py(utilityAt(graph, x))} r="2.5" />}
    </svg>
  );
}

/** A graph as an SVG path, flat beyond its ends. */
export function graphPath(
  graph: Graph,
  low: number,
  high: number,
  px: (x: number) => number,
  py: (y: number) => number,
): string {
  const inner = graph.filter((point) => point[0] >= low && point[0] <= high);
  const points: Graph = [[low, utilityAt(graph, low)], ...inner, [high, utilityAt(graph, high)]];
  return points.map((point, at) => `${at ? "L" : "M"}${px(point[0]).toFixed(1)} ${py(point[1]).toFixed(1)}`).join("");
}
