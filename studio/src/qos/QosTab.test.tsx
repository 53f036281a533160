import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { useState } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { api } from "../api/client";
import type { Declaration } from "../api/types";
import { useDeployed } from "../store/deployed";
import { liveStore } from "../store/live";
import { outputFigures, picture } from "../testing/picture";
import { QosTab } from "./QosTab";

const START = { latency: [[0, 1], [2, 1], [10, 0]] };
let latest: Declaration | null = START;

const merges: (string | undefined)[] = [];

function Page() {
  const [value, setValue] = useState<Declaration | null>(START);
  const change = (to: Declaration | null, merge?: string) => {
    latest = to;
    merges.push(merge);
    setValue(to);
  };
  return <QosTab output="alerts" value={value} onChange={change} />;
}

/** The graphs that hold now. */
const holds = (qos: Declaration) => liveStore.setState({ picture: picture({ outputs: { alerts: outputFigures({ qos }) } }) });

beforeEach(() => {
  latest = START;
  merges.length = 0;
  const quality = { delays: [[6, 10]], history: [{ ago_s: 1, delay_s: 6, delivered: 10, utility: 0.5 }], delivered: 10, shed: 0 };
  vi.spyOn(api, "describe").mockResolvedValue({ quality });
  holds(START);
  useDeployed.setState({ network: { network: "n", outputs: { alerts: { from: "hot", qos: START } } } });
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

const show = async () => {
  render(<Page />);
  await act(async () => {
    await Promise.resolve();
  });
};

describe("QosTab", () => {
  it("shows the utility that would follow from what was observed", async () => {
    await show();
    expect(screen.getByText("0.50")).toBeTruthy();
    fireEvent.keyDown(screen.getByTestId("qos-point-latency-2"), { key: "Delete" });
    expect(latest?.latency).toEqual([[0, 1], [2, 1]]);
    expect(screen.getByText("1.00")).toBeTruthy();
  });

  it("begins a value graph with a field of numbers, and lets one choose another", async () => {
    const fields = [{ name: "machine", type: "string" }, { name: "celsius", type: "double" }, { name: "bar", type: "int" }];
    useDeployed.setState({ check: { ok: true, problems: [], cautions: [], arcs: { hot: { fields, progress: [] } }, queries: {} } });
    await show();
    fireEvent.click(screen.getByText("Value graph"));
    expect(latest).toMatchObject({ value: { on: "celsius" } });
    fireEvent.change(screen.getByLabelText("Field"), { target: { value: "bar" } });
    expect(latest).toMatchObject({ value: { on: "bar" } });
    useDeployed.setState({ check: null });
  });

  it("says that nothing was observed instead of a utility", async () => {
    vi.spyOn(api, "describe").mockResolvedValue({ quality: { delays: [], history: [], delivered: 0, shed: 0 } });
    await show();
    expect(screen.getByText(/nothing observed yet/)).toBeTruthy();
  });

  it("gives a drag up by Escape, or when the pointer is taken away", async () => {
    await show();
    const point = screen.getByTestId("qos-point-latency-1");
    Object.assign(point, { setPointerCapture: () => undefined });
    for (const giveUp of [() => fireEvent.keyDown(window, { key: "Escape" }), () => fireEvent.pointerCancel(point)]) {
      fireEvent.pointerDown(point, { clientX: 0, clientY: 0 });
      fireEvent.pointerMove(point, { clientX: 40, clientY: 40 });
      giveUp();
      fireEvent.pointerUp(point);
      expect(latest).toBe(START);
    }
  });

  it("counts each drag as a change of its own, and steps by keys of one point as one", async () => {
    await show();
    const point = screen.getByTestId("qos-point-latency-1");
    for (let n = 0; n < 2; n += 1) fireEvent.keyDown(point, { key: "ArrowDown", shiftKey: true });
    expect(merges).toEqual(["latency point 1", "latency point 1"]);
    Object.assign(point, { setPointerCapture: () => undefined });
    vi.spyOn(Element.prototype, "getBoundingClientRect").mockReturnValue({ left: 0, top: 0, width: 320, height: 176 } as DOMRect);
    fireEvent.pointerDown(point, { clientX: 70, clientY: 10 });
    fireEvent.pointerMove(point, { clientX: 90, clientY: 60 });
    fireEvent.pointerUp(point);
    expect(merges.slice(2)).toEqual([undefined]);
  });

  it("moves points by arrow keys and by numbers", async () => {
    await show();
    fireEvent.keyDown(screen.getByTestId("qos-point-latency-1"), { key: "ArrowDown" });
    expect(latest?.latency).toEqual([[0, 1], [2, 0.95], [10, 0]]);
    const box = screen.getByLabelText("delay in seconds of point 2");
    fireEvent.change(box, { target: { value: "3.5" } });
    fireEvent.blur(box);
    expect(latest?.latency).toEqual([[0, 1], [3.5, 0.95], [10, 0]]);
  });

  it("says what check would say, and how to allow it", async () => {
    await show();
    const box = screen.getByLabelText("utility of point 2");
    fireEvent.change(box, { target: { value: "0.1" } });
    fireEvent.keyDown(box, { key: "Enter" });
    expect(screen.getByRole("alert").textContent).toMatch(/steeper/);
    fireEvent.click(screen.getByText("Take it as it is"));
    expect(latest?.convex).toBe(false);
    expect(screen.queryByRole("alert")).toBeNull();
  });

  it("adds and removes whole graphs", async () => {
    await show();
    fireEvent.click(screen.getByText("Loss graph"));
    expect(latest?.loss).toEqual([[0, 0], [0.5, 0.8], [1, 1]]);
    fireEvent.click(screen.getByLabelText("Remove the latency graph"));
    fireEvent.click(screen.getByLabelText("Remove the loss graph"));
    expect(latest).toBeNull();
    expect(screen.getByText(/No graph of its own/)).toBeTruthy();
  });

  it("applies graphs to the running output only if they differ", async () => {
    const set = vi.spyOn(api, "setQos").mockResolvedValue(null);
    await show();
    const apply = () => screen.getByTestId<HTMLButtonElement>("qos-apply");
    expect(apply().disabled).toBe(true);
    fireEvent.keyDown(screen.getByTestId("qos-point-latency-1"), { key: "ArrowDown", shiftKey: true });
    await act(async () => {
      apply().click();
      await Promise.resolve();
    });
    expect(set).toHaveBeenCalledWith("alerts", { latency: [[0, 1], [2, 0.99], [10, 0]] });
    act(() => holds({ latency: [[0, 1], [2, 0.99], [10, 0]] }));
    expect(apply().disabled).toBe(true);
  });
});
