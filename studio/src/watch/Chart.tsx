import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { lineStyle, type ChartSeries } from "./lines";
import { useScheme } from "./scheme";

type Props = {
  title: string;
  /** Seconds since 1970, ascending; or any numbers if `time` is false. */
  at: number[];
  series: ChartSeries[];
  format: (value: number | null) => string;
  /** In pixels; "fill" takes what the surroundings leave. */
  height?: number | "fill";
  time?: boolean;
  /** A fixed range of y. */
  range?: [number, number];
  /** Whether y begins at zero. */
  zero?: boolean;
};

/** A line's mark and its name stay together. */
const ENTRY = { display: "inline-block", maxWidth: "100%", overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap", verticalAlign: "bottom" } as const;

/** Lines over time. Colours are neutral; several lines differ by their dashes, and from the fifth on by tone and width. */
export function Chart({ title, at, series, format, height = 96, time = true, range, zero = true }: Props) {
  const ref = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const scheme = useScheme();
  const [pointed, setPointed] = useState<number | null>(null);
  const labels = series.map((one) => one.label).join("\n");
  const data = useRef<uPlot.AlignedData>([[]]);
  useEffect(() => {
    // The last is drawn first, so that thick lines lie below thin ones.
    data.current = [at, ...series.map((one) => one.values).reverse()];
    plot.current?.setData(data.current);
  }, [at, series]);

  useEffect(() => {
    const box = ref.current;
    if (!box) return;
    const style = getComputedStyle(box);
    const colour = (name: string) => style.getPropertyValue(name).trim() || style.color;
    const [muted, line] = [colour("--muted"), colour("--line")];
    const font = `11px ${style.fontFamily}`;
    const axis = { stroke: muted, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
    const made = new uPlot(
      {
        ...sizeOf(box, height),
        padding: [6, 8, 0, 0],
        cursor: { y: false, drag: { x: false, y: false }, focus: { prox: 24 } },
        focus: { alpha: 0.3 },
        legend: { show: false },
        hooks: { setCursor: [(self) => setPointed(self.cursor.idx ?? null)] },
        scales: { x: { time }, y: { range: range ?? ((_, low, high) => tidyRange(low, high, zero)) } },
        axes: [
          { ...axis, space: 70, size: 24, values: time ? clockTicks : undefined },
          { ...axis, size: 62, space: 28, values: (_, ticks) => ticks.map((tick) => format(tick)) },
        ],
        series: [
          {},
          ...labels.split("\n").map((label, index) => {
            const { dash, width, tone } = lineStyle(index);
            return { label, stroke: colour(tone), width, dash, points: { show: false } };
          }).reverse(),
        ],
      },
      data.current,
      box,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize(sizeOf(box, height)));
    observer.observe(box);
    return () => {
      observer.disconnect();
      plot.current = null;
      made.destroy();
    };
    // `format` and `range` are constants of a chart; lines are told apart by their labels.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [labels, scheme, height, time]);

  const place = pointed ?? at.length - 1;
  const when = pointed === null ? "" : time ? clock(at[place] ?? 0) : String(at[place] ?? "");
  const texts = series.map((one) => format(pointed === null ? newest(one.values) : (one.values[place] ?? null)));
  return (
    <figure className={`chart ${height === "fill" ? "fill" : ""}`}>
      <figcaption>
        {title}{" "}
        {series.map((one, index) => (
          <span className="quiet" key={one.label} style={ENTRY}>
            {series.length > 1 && <Marker index={index} />}
            {series.length > 1 ? `${one.label} ` : ""}
            {texts[index]}
          </span>
        ))}
        {when && <span className="quiet chart-when">{when}</span>}
      </figcaption>
      <div
        ref={ref}
        role="img"
        aria-label={`${title}: ${series.map((one, index) => `${one.label} ${texts[index]}`).join(", ")}`}
        className="chart-box"
        style={height === "fill" ? undefined : { minHeight: height }}
      />
    </figure>
  );
}

const newest = (values: (number | null | undefined)[]) => values.findLast((value) => typeof value === "number") ?? null;

const sizeOf = (box: HTMLElement, height: number | "fill") => ({
  width: Math.max(box.clientWidth, 120),
  height: height === "fill" ? Math.max(box.clientHeight, 64) : height,
});

function Marker({ index }: { index: number }) {
  const { dash, width, tone } = lineStyle(index);
  return (
    <svg className="chart-marker" width="28" height="8" aria-hidden="true">
      <line x1="0" x2="28" y1="4" y2="4" style={{ stroke: `var(${tone})`, strokeWidth: width }} strokeDasharray={dash.join(" ")} />
    </svg>
  );
}

const two = (part: number) => String(part).padStart(2, "0");

function clock(seconds: number): string {
  const at = new Date(seconds * 1000);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

function clockTicks(plot: uPlot, ticks: number[]): string[] {
  const { min, max } = plot.scales.x ?? {};
  const range = (max ?? 0) - (min ?? 0);
  if (range < 8) return ticks.map((tick) => `${clock(tick).slice(6)}.${String(Math.round((tick % 1) * 1000)).padStart(3, "0")}`);
  return ticks.map((tick) => (range < 180 ? clock(tick) : clock(tick).slice(0, 5)));
}

/** A range that begins at zero if values are not negative, with some air above. */
export function tidyRange(low: number | null, high: number | null, zero = true): [number, number] {
  const least = zero ? Math.min(low ?? 0, 0) : (low ?? 0);
  const most = zero ? Math.max(high ?? 0, 0) : (high ?? 1);
  const air = (most - least) * 0.1;
  if (most <= least) return zero ? [0, 1] : [least - 1, least + 1];
  return [zero && least === 0 ? 0 : least - air, most + air];
}
