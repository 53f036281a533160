import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { Profiler } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import type { Json } from "../api/types";
import { applyFrame, emptyLive, sampleKey } from "../store/frames";
import { graphOf } from "../canvas/graph";
import { useModel } from "../canvas/model";
import { liveStore, subscription } from "../store/live";
import { useUi } from "../store/ui";
import { arcFigures, boxFigures, outputFigures, picture } from "../testing/picture";
import { useArcLook } from "./arcLook";
import { BoxFiguresRow } from "./BoxFiguresRow";
import { RowTable } from "./RowTable";
import { StatusBar } from "./StatusBar";
import { sentence } from "./sentences";
import { Story } from "./Story";
import { TuplesPanel } from "./TuplesPanel";

beforeEach(() => liveStore.setState({ ...emptyLive, status: "live", picture: picture(), seq: 1 }));
afterEach(cleanup);

const patch = (seq: number, change: Json) =>
  act(() => liveStore.setState(applyFrame(liveStore.getState(), { type: "picture", seq, whole: false, patch: change }).change));

describe("figures on the canvas", () => {
  it("render only when their text changes", () => {
    let renders = 0;
    render(
      <Profiler id="box" onRender={() => (renders += 1)}>
        <BoxFiguresRow name="hot" />
      </Profiler>,
    );
    expect(screen.getByText("1.0 %")).toBeTruthy();
    patch(2, { rate: 1, boxes: { cold: boxFigures() as unknown as Json } });
    patch(3, { boxes: { hot: { in_rate: 2000.001 } } });
    expect(renders).toBe(1);
    patch(4, { boxes: { hot: { late: { closed: 3 } } } });
    expect(renders).toBe(2);
    expect(screen.getByText(/3 late/)).toBeTruthy();
  });

  it("say nothing of a box that does not run", () => {
    const { container } = render(<BoxFiguresRow name="draft" />);
    expect(container.textContent).toBe("");
  });

  it("draw an arc by its pressure", () => {
    const Arc = () => {
      const look = useArcLook("readings");
      return <p>{`${look.tone} ${look.queue} ${look.age}`.trim()}</p>;
    };
    render(<Arc />);
    expect(screen.getByText("calm")).toBeTruthy();
    patch(2, { arcs: { readings: arcFigures({ queued: 4800, oldest_s: 9, pressed: { hot: { oldest_s: 9, patience_s: 2 } } }) as unknown as Json } });
    expect(screen.getByText("red 4.8 k 9.0 s")).toBeTruthy();
  });
});

describe("StatusBar", () => {
  it("tells that figures are old while it reconnects", () => {
    vi.stubGlobal("WebSocket", class { close = () => undefined; });
    render(<StatusBar />);
    act(() => liveStore.setState({ status: "reconnecting", attempt: 3 }));
    expect(screen.getByRole("status").textContent).toBe("reconnecting (3)");
    act(() => liveStore.setState({ status: "live", attempt: 0 }));
    expect(screen.getByRole("status").textContent).toBe("running");
    act(() => liveStore.setState({ picture: picture({ state: "paused", outputs: { alerts: outputFigures(), rest: outputFigures() }, debug: { ...picture().debug, paused: true, applications: ["alerts"] } }) }));
    expect(screen.getByRole("status").textContent).toBe("running");
    expect(screen.getByText("alerts paused")).toBeTruthy();
  });
});

describe("TuplesPanel", () => {
  it("freezes when a row is chosen, and follows again when asked to", () => {
    useUi.getState().select({ kind: "box", name: "hot" });
    render(<TuplesPanel />);
    const sample = (n: number) => ({ [sampleKey({ arc: "hot", limit: 200, where: null })]: { table: { fields: [{ name: "n", type: "int" }], rows: [[n]] }, problem: null } });
    act(() => liveStore.setState({ samples: sample(41) }));
    fireEvent.click(screen.getByText("41"));
    act(() => liveStore.setState({ samples: sample(42) }));
    expect(screen.getByText("41")).toBeTruthy();
    fireEvent.click(screen.getByText("Follow"));
    expect(screen.getByText("42")).toBeTruthy();
  });

  const sampled = (amount: number, where: string | null = null) => ({
    [sampleKey({ arc: "hot", limit: 200, where })]: { table: { fields: [{ name: "n", type: "int" }], rows: Array.from({ length: amount }, (_, n) => [n]) }, problem: null },
  });

  it("holds still while a person scrolls, and follows again at the end", () => {
    useUi.getState().select({ kind: "arc", name: "hot" });
    const { container } = render(<TuplesPanel />);
    act(() => liveStore.setState({ samples: sampled(100) }));
    const box = container.querySelector(".rows") as HTMLElement;
    Object.defineProperties(box, { clientHeight: { value: 240 }, scrollHeight: { value: 2424, configurable: true } });
    box.scrollTop = 600;
    fireEvent.scroll(box);
    expect(screen.getByText(/frozen/)).toBeTruthy();
    act(() => liveStore.setState({ samples: sampled(120) }));
    expect(box.scrollTop).toBe(600);
    box.scrollTop = 2184;
    fireEvent.scroll(box);
    expect(screen.queryByText(/frozen/)).toBeNull();
  });

  it("follows again when a filter is applied", async () => {
    useUi.getState().select({ kind: "arc", name: "hot" });
    const { container } = render(<TuplesPanel />);
    act(() => liveStore.setState({ samples: sampled(3) }));
    fireEvent.click(screen.getByText("2"));
    expect(screen.getByText(/frozen/)).toBeTruthy();
    fireEvent.submit(container.querySelector("form") as HTMLFormElement);
    expect(screen.queryByText(/frozen/)).toBeNull();
  });

  it("shows what is wrong with a filter", () => {
    useUi.getState().select({ kind: "arc", name: "hot" });
    render(<TuplesPanel />);
    const problem = { type: "", title: "", status: 400, detail: "there is no field x", code: "UNKNOWN_FIELD", hint: "celsius" };
    act(() => liveStore.setState({ samples: { [sampleKey({ arc: "hot", limit: 200, where: null })]: { table: { fields: [], rows: [] }, problem } } }));
    expect(screen.getByRole("alert").textContent).toContain("there is no field x");
  });
});

describe("tuples of a box with routes", () => {
  it("are those of the port that is chosen", () => {
    const network = { network: "n", boxes: { watch: { box: "filter", input: "s", routes: { hot: "a > 1" } } } };
    useModel.setState({ graph: graphOf(network, null, []) });
    useUi.getState().select({ kind: "box", name: "watch" });
    render(<TuplesPanel />);
    const wanted = () => subscription().samples?.map(({ arc }) => arc);
    expect(wanted()).toEqual(["watch.hot"]);
    fireEvent.change(screen.getByLabelText("Port"), { target: { value: "watch.rest" } });
    expect(wanted()).toEqual(["watch.rest"]);
    expect(screen.getByText<HTMLButtonElement>("Edit and send").title).toMatch(/Only streams/);
  });
});

describe("RowTable", () => {
  it("draws a few of many rows and moves by keys", () => {
    const rows = Array.from({ length: 5000 }, (_, at) => [at]);
    let chosen = -1;
    render(<RowTable label="rows" fields={[{ name: "n", type: "int" }]} rows={rows} selected={3} onSelect={(at) => (chosen = at)} />);
    expect(screen.getAllByRole("row").length).toBeLessThan(60);
    fireEvent.keyDown(screen.getByRole("grid"), { key: "ArrowDown" });
    expect(chosen).toBe(4);
    fireEvent.keyDown(screen.getByRole("grid"), { key: "End" });
    expect(chosen).toBe(4999);
  });
});

describe("sentences", () => {
  const entry = (event: string, why: string, count: number, about = ["hot"]) => ({ at_us: 0, about, event, why, count });
  it.each([
    [entry("ran", "round robin", 1), "hot", "ran: round robin"],
    [entry("waited", "waited 1.2 s: alerts was due sooner", 3), "hot", "waited 1.2 s: alerts was due sooner (3 times)"],
    [entry("waited", "(eddy@readings) was due sooner", 1), "hot", "waited: queries over readings was due sooner"],
    [entry("moved", "", 1, ["hot", "cold"]), null, "hot and cold was moved"],
  ])("%j about %s: %s", (given, about, text) => expect(sentence(given, about)).toBe(text));
});

describe("Story", () => {
  it("tells decisions in sentences, newest first, and hides kinds", () => {
    const entries = [
      { at_us: 1e9 - 12e6, about: ["hot"], event: "waited", why: "alerts had the steeper graph", count: 1 },
      { at_us: 1e9, about: ["hot"], event: "ran", why: "round robin", count: 12 },
    ];
    render(<Story entries={entries} about="hot" empty="" />);
    expect(screen.getAllByRole("listitem").map((item) => item.textContent)).toEqual([
      "nowran 12 times: round robin",
      "12 s agowaited: alerts had the steeper graph",
    ]);
    fireEvent.click(screen.getByRole("button", { name: "ran" }));
    expect(screen.getAllByRole("listitem")).toHaveLength(1);
  });
});
