import { describe, expect, it } from "vitest";

import { outputFigures, picture } from "../testing/picture";
import { lineStyle, MOST_LINES } from "./lines";
import { appended, plannedCharts } from "./series";

const at = (seconds: number, utility: number | null) =>
  picture({ at_us: seconds * 1e6, outputs: { alerts: outputFigures({ utility }) } });

describe("appended", () => {
  const history = { at_s: [1000, 1002], series: { utility: [1, 0.9], rate: [5, 6] } };

  it("goes on with the figures of the picture, every two seconds", () => {
    const grown = appended(history, at(1004, 0.8), "output", "alerts");
    expect(grown.at_s).toEqual([1000, 1002, 1004]);
    expect(grown.series.utility).toEqual([1, 0.9, 0.8]);
    expect(grown.series.latency_s).toEqual([null, null, 0.4]);
    expect(appended(grown, at(1004.5, 0.1), "output", "alerts")).toBe(grown);
  });

  it("forgets what is older than fifteen minutes", () => {
    expect(appended({ ...history, at_s: [1000, 1895] }, at(1901, 0.5), "output", "alerts").at_s).toEqual([1895, 1901]);
    expect(appended(history, at(9000, 0.5), "output", "alerts").at_s).toEqual([9000]);
  });

  it("breaks the lines over a time without pictures", () => {
    const grown = appended(history, at(1100, 0.5), "output", "alerts");
    expect(grown.at_s).toEqual([1000, 1002, 1004, 1100]);
    expect(grown.series.utility).toEqual([1, 0.9, null, 0.5]);
  });

  it("has gaps where an entity is not in the picture", () => {
    const grown = appended(history, at(1004, 0.8), "output", "gone");
    expect(grown.series.utility).toEqual([1, 0.9, null]);
  });
});

describe("plannedCharts", () => {
  it("puts series of one unit into one chart and leaves out empty ones", () => {
    const charts = plannedCharts({ in_rate: [1], out_rate: [2], cost_s: [null], odd: [3] });
    expect(charts.map((chart) => [chart.title, chart.keys])).toEqual([
      ["Rate", ["in_rate", "out_rate"]],
      ["odd", ["odd"]],
    ]);
  });
});

describe("lines of a chart", () => {
  it("all differ in dash or width", () => {
    const styles = Array.from({ length: MOST_LINES }, (_, index) => JSON.stringify([lineStyle(index).dash.length, lineStyle(index).dash[0], lineStyle(index).width]));
    expect(new Set(styles).size).toBe(8);
  });
});
