"""A restart takes up the superboxes of a state directory; others take over by an epoch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import auroral as au
from auroral import Network
from auroral.storage import Change

from . import sparkless

ROWS = [{"a": n, "b": n % 7} for n in range(60)]
EVEN = [row for row in ROWS if row["a"] % 2 == 0]
SOON, LATE = 1.0, 10.0


def falling(until: float) -> au.QoS:
    return au.QoS(latency=[(0, 1), (until, 1), (2 * until, 0)])


def network(twice: float | None = None, *, more: bool = False, split: bool = False) -> Network:
    """Two outputs, one with a graph that falls when it is told, and one more.

    Both are behind one filter, or behind two if they are `split`.
    """
    net = Network("stored")
    s = net.stream("s", "a int, b int")
    even = s.filter("a % 2 = 0", name="even")
    net.output("twice", even.map(c="b * 2", name="double"), qos=falling(twice) if twice else None)
    net.output("large", (s if split else even).filter("a % 2 = 0 and b > 3", name="big"))
    if more:
        net.output("sums", s.map(q="a + b", name="sum"))
    return net


def fused(engine: au.Engine) -> set[str]:
    return {" ".join(superbox.boxes) for superbox in engine._loop.execution.superboxes}


APART, TOGETHER = {"even", "double", "big"}, {"even double big"}


def require_results(engine: au.Engine) -> None:
    """Every tuple was processed once."""
    assert engine.dequeue("twice")["c"].to_pylist() == [2 * row["b"] for row in EVEN]
    assert engine.dequeue("large").to_pylist() == [row for row in EVEN if row["b"] > 3]


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("entered", [True, False])
@pytest.mark.parametrize("chosen", [SOON, LATE])
def test_a_file_with_other_graphs_fuses_boxes_anew_by_an_epoch_only(
    chosen: float, entered: bool, split: bool, tmp_path: Path
) -> None:
    """Nothing that waits for the superboxes of graphs that were set is lost or repeated."""
    apart = {"even double", "big"} if split else APART
    left, then = (TOGETHER, apart) if chosen == SOON else (apart, TOGETHER)
    with sparkless.make_engine(network(SOON, split=split), state=tmp_path, train=3) as engine:
        engine.enqueue("s", ROWS[:10])
        engine._loop.work()
        engine.set_qos("large", falling(chosen))
        if entered:
            engine.drain()
            assert fused(engine) == left
        for at in range(10, 30, 5):
            engine.enqueue("s", ROWS[at : at + 5])
        engine._loop.work()
    for at in (30, 40):  # the second time with a file that says what it said before
        with sparkless.make_engine(network(LATE, split=split), state=tmp_path, train=3) as engine:
            engine.enqueue("s", ROWS[at : at + 10])
            engine._loop.work()
    with sparkless.make_engine(network(LATE, split=split), state=tmp_path) as engine:
        engine.enqueue("s", ROWS[50:])
        engine.drain()
        assert fused(engine) == then
        held = engine._context.quality.outputs
        assert held == {"twice": falling(LATE), "large": falling(chosen)}
        require_results(engine)


def test_other_graphs_hold_at_once_if_the_same_boxes_run_as_one(tmp_path: Path) -> None:
    with sparkless.make_engine(network(SOON), state=tmp_path, train=3) as engine:
        engine.enqueue("s", ROWS[:30])
        engine._loop.work()
    with sparkless.make_engine(network(LATE), state=tmp_path) as engine:
        assert engine.edited == {}
        assert engine.network.outputs["twice"].qos == falling(LATE)
        engine.enqueue("s", ROWS[30:])
        engine.drain()
        require_results(engine)


@pytest.mark.parametrize("by_file", [True, False])
def test_a_directory_of_an_earlier_version_keeps_its_superboxes_until_an_epoch(
    by_file: bool, tmp_path: Path
) -> None:
    """Earlier versions ran outputs without graphs together with those with the only graphs."""
    apart = {"even double", "big"}
    with sparkless.make_engine(network(split=True), state=tmp_path, train=3) as engine:
        engine.enqueue("s", ROWS[:30])
        for _ in range(4):
            engine._loop.work()
        running = json.loads(engine._store.manifest.meta("running") or "")
        del running["fusion_rule"]
        graphs = {"twice": falling(SOON).document()}
        running["network"]["outputs"]["twice"]["qos"] = graphs["twice"]
        file = graphs if by_file else {}  # else `modify` has declared them
        meta = {"running": json.dumps(running), "qos of the file": json.dumps(file)}
        engine._store.commit(Change(meta=meta))
    given = network(SOON if by_file else None, split=True)
    for at in (30, 40):
        with sparkless.make_engine(given, state=tmp_path, train=3) as engine:
            assert fused(engine) == (apart if by_file else TOGETHER)
            assert bool(engine.edited) == (by_file and at == 30)
            engine.enqueue("s", ROWS[at : at + 10])
            engine._loop.work()
    with sparkless.make_engine(given, state=tmp_path) as engine:
        engine.set_qos("twice", falling(LATE))
        engine.enqueue("s", ROWS[50:])
        engine.drain()
        assert fused(engine) == apart
        require_results(engine)


@pytest.mark.parametrize("chosen", [SOON, None])
def test_graphs_that_were_set_survive_a_file_that_changes_elsewhere(
    chosen: float | None, tmp_path: Path
) -> None:
    wanted = falling(chosen) if chosen else None
    with sparkless.make_engine(network(LATE), state=tmp_path) as engine:
        engine.set_qos("twice", wanted)
        engine.enqueue("s", ROWS[:30])
        engine.drain()
    for at in (30, 40):
        with sparkless.make_engine(network(LATE, more=True), state=tmp_path) as engine:
            assert bool(engine.edited) == (at == 30)
            engine.enqueue("s", ROWS[at : at + 10])
            engine.drain()
            assert engine._context.quality.outputs["twice"] == wanted
            assert engine.network.outputs["twice"].qos == wanted
    with sparkless.make_engine(network(7.0, more=True), state=tmp_path) as engine:
        engine.enqueue("s", ROWS[50:])
        engine.drain()
        assert engine._context.quality.outputs["twice"] == falling(7.0)
        require_results(engine)


def test_a_graph_of_a_field_that_a_file_takes_away_is_not_declared(tmp_path: Path) -> None:
    with sparkless.make_engine(network(), state=tmp_path) as engine:
        engine.set_qos("twice", {"value": {"on": "c", "graph": [[0, 0], [1, 1]]}})
        engine.set_qos("large", falling(SOON))
    other = network()
    other.outputs["twice"] = other.outputs["large"]
    with sparkless.make_engine(other, state=tmp_path) as engine:
        engine.drain()
        assert engine.network.outputs["large"].qos == falling(SOON)
        assert engine.network.outputs["twice"].qos is None


def test_a_view_whose_graphs_were_taken_away_can_be_given_others(tmp_path: Path) -> None:
    def with_view() -> Network:
        net = network()
        net.declare("views", "recent", {"from": "double", "keep": "all", "qos": falling(SOON)})
        return net

    with sparkless.make_engine(with_view(), state=tmp_path) as engine:
        engine.set_qos("recent", None)
        engine.enqueue("s", ROWS[:20])
        engine.drain()
        assert engine.stats()["qos"]["recent"]
    with sparkless.make_engine(with_view(), state=tmp_path) as engine:
        assert engine._context.quality.outputs["recent"] is None
        engine.set_qos("recent", falling(LATE))
        engine.enqueue("s", ROWS[20:])
        engine.drain()
        assert engine._context.quality.outputs["recent"] == falling(LATE)
        require_results(engine)
