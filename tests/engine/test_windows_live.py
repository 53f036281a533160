"""Windows and joins while time passes: idle inputs, timeouts, an end that is interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import auroral as au
from auroral.io.sources.files import FileSource
from auroral.testing import Collector, ManualClock

if TYPE_CHECKING:
    from tests.conftest import MakeEngine

pytestmark = pytest.mark.spark


def rows(engine: au.Engine, output: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in engine.dequeue(output).to_pylist()]


def test_an_idle_input_stalls_neither_union_nor_join(make_engine: MakeEngine) -> None:
    net = au.Network("idle")
    busy = net.stream("busy", "t bigint", progress=au.Ordered("t"))
    idle = net.stream("idle", "t bigint", progress=au.Ordered("t", heartbeat=5))
    order = au.Order("t")
    both = busy.union(idle, name="both")
    net.output("counts", both.aggregate(order, au.Window(size=10), n="count(*)", name="counts"))
    pairs = busy.join(idle, left=order, right=order, within=2, name="pairs")
    net.output("pairs", pairs)
    clock = ManualClock(20)
    with make_engine(net, now_us=clock) as engine:
        engine.enqueue("busy", [(11,), (12,), (40,)])
        engine.drain()
        assert rows(engine, "counts") == [], "the idle input has only promised 15"
        assert engine.stats()["boxes"]["pairs"]["held"] == 1, "11 and 12 cannot be joined any more"
        clock.advance(10)
        engine._ingest.tick()
        engine.drain()
        assert rows(engine, "counts") == [(10, 2)], "it promised 25 by its heartbeat"
        clock.advance(100)
        engine._ingest.tick()
        engine.drain()
        assert engine.stats()["boxes"]["pairs"]["held"] == 0


def test_a_window_times_out_although_nothing_arrives(make_engine: MakeEngine) -> None:
    net = au.Network("impatient")
    s = net.stream("s", "t bigint", progress=au.Ordered("t"))
    window = au.Window(size=10, timeout=5)
    counts = s.aggregate(au.Order("t"), window, n="count(*)", name="counts")
    net.output("counts", counts)
    net.output("late", counts.late)
    clock = ManualClock(100)
    with make_engine(net, now_us=clock) as engine:
        engine.enqueue("s", [(1,), (2,)])
        engine.drain()
        clock.advance(5)
        engine._ingest.tick()
        engine.drain()
        assert rows(engine, "counts") == [], "exactly five seconds are not more than five"
        clock.advance(0.1)
        engine._ingest.tick()
        engine.drain()
        assert rows(engine, "counts") == [(0, 2)]
        engine.enqueue("s", [(3,), (11,)])
        engine.finish()
        assert (rows(engine, "counts"), rows(engine, "late")) == ([(10, 1)], [(3,)])


class Crash(BaseException):
    """The process dies."""


@pytest.mark.parametrize("die_at", range(0, 9, 2))
def test_an_end_that_is_interrupted_is_carried_out_later(
    make_engine: MakeEngine, tmp_path: Path, die_at: int
) -> None:
    net = au.Network("ends")
    s = net.stream("s", "t bigint", progress=au.Ordered("t"))
    counts = s.aggregate(au.Order("t"), au.Window(size=10), n="count(*)", name="counts")
    total = counts.aggregate(au.Order("t"), au.Window(size=100), n="sum(n)", name="total")
    net.output("total", total)
    sink = Collector()
    ending, passed = False, 0

    def fault(_point: str) -> None:
        nonlocal passed
        passed += ending
        if ending and passed == die_at + 1:
            raise Crash

    def run() -> None:
        nonlocal ending
        with make_engine(
            net, bind=[("total", sink)], state=tmp_path / "state", fault=fault
        ) as engine:
            if not engine.ended:
                if engine.position("s") is None:
                    engine.enqueue("s", [(t,) for t in range(45)], position=0)
                engine.drain()
                ending = True
            engine.finish()

    try:
        run()
    except Crash:
        run()
    assert sink.rows == [{"t": 0, "n": 45}]


def test_nothing_is_taken_after_the_end(make_engine: MakeEngine, tmp_path: Path) -> None:
    net = au.Network("over")
    s = net.stream("s", "t bigint", progress=au.Ordered("t"))
    counts = s.aggregate(au.Order("t"), au.Window(size=10), n="count(*)", name="counts")
    net.output("counts", counts)
    file = tmp_path / "s.csv"
    file.write_text("t\n1\n2\n")
    for more in ("", "30\n"):
        with file.open("a") as opened:
            opened.write(more)
        source = FileSource("s", file, net.streams["s"].schema_)
        with make_engine(net, bind=[source], state=tmp_path / "state") as engine:
            engine.finish()
            assert engine.stats()["streams"]["s"]["in"] == 2, "what comes after the end stays out"
            with pytest.raises(au.UsageError, match="INPUT_ENDED"):
                engine.enqueue("s", [(40,)])
            assert rows(engine, "counts") == ([] if more else [(0, 2)])
