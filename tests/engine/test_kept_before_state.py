"""Connection points before boxes with state: the arc is written, and the boxes stay together."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.spark.running import stateful_runner
from tests.conformance.running import MakeEngine
from tests.conformance.sparkless import make_engine

POINTS = ("near", "near.rest", "both", "scaled")


def network(*points: str, keep: Any = "all") -> au.Network:
    """Filter, map and union before a window; points on some of their arcs."""
    net = au.Network("kept")
    ticks = net.stream("ticks", "k int, t bigint, x double", progress=au.Ordered("t"))
    near = ticks.filter("x < 5", name="near")
    scaled = near.rest.map(k="k", t="t", x="x / 2", name="scaled")
    both = near.union(scaled, name="both")
    counted = both.aggregate(
        au.Order("t", by=("k",)), au.Window(size=7), n="count(*)", s="sum(x)", name="counted"
    )
    net.output("counts", counted)
    for number, arc in enumerate(points):
        net.connection_point(f"p{number}", arc, keep=keep)
    return net


def ticks(first: int, last: int) -> list[dict[str, Any]]:
    return [{"k": n % 3, "t": n, "x": float(n * 7 % 11)} for n in range(first, last)]


def taken(engine: au.Engine, name: str) -> list[dict[str, Any]]:
    return list(engine.dequeue(name).to_pylist())


def expected(last: int) -> dict[str, list[dict[str, Any]]]:
    """What each arc carries."""
    near = [row for row in ticks(0, last) if row["x"] < 5]
    rest = [row for row in ticks(0, last) if row["x"] >= 5]
    scaled = [{**row, "x": row["x"] / 2} for row in rest]
    both = sorted([*near, *scaled], key=lambda row: row["t"])
    return {"near": near, "near.rest": rest, "scaled": scaled, "both": both}


def counts(last: int) -> list[dict[str, Any]]:
    with make_engine(network()) as engine:
        engine.enqueue("ticks", ticks(0, last))
        engine.finish()
        return taken(engine, "counts")


@pytest.mark.parametrize("points", [(), ("both",), ("scaled",), POINTS])
def test_a_point_does_not_part_a_window_from_the_boxes_before_it(points: tuple[str, ...]) -> None:
    with make_engine(network(*points)) as engine:
        (superbox,) = engine._loop.execution.superboxes
        assert superbox.boxes == ("near", "scaled", "both", "counted")
        assert set(superbox.terminals) == {"counted", *points}


@pytest.mark.parametrize("train", [1, 4, 1000])
@pytest.mark.parametrize("tasks", [False, True])
def test_arcs_and_results_are_the_same(
    train: int, tasks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the train, and however many tasks run the kernel."""
    if tasks:
        monkeypatch.setattr(stateful_runner, "PARALLEL_ROWS", 0)
    with make_engine(network(*POINTS), train=train, buckets=3) as engine:
        engine.enqueue("ticks", ticks(0, 25))
        engine.drain()
        for number, arc in enumerate(POINTS):
            engine.attach(f"p{number}", lambda arc: arc, name=f"a{number}")
            assert engine.stats()["arcs"][arc]["tuples"] == len(expected(25)[arc])
        engine.enqueue("ticks", ticks(25, 40))
        engine.finish()
        assert taken(engine, "counts") == counts(40)
        for number, arc in enumerate(POINTS):
            assert taken(engine, f"a{number}") == expected(40)[arc]


class _CrashError(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("crash", range(1, 40, 3))
def test_no_crash_loses_or_repeats_kept_tuples(crash: int, tmp_path: Path) -> None:
    left = [crash]

    def fault(_point: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise _CrashError

    results: list[dict[str, Any]] = []
    for _attempt in range(2):
        with (
            suppress(_CrashError),
            make_engine(network("both"), state=tmp_path, train=6, fault=fault) as engine,
        ):
            if not engine.ended:
                done = engine.position("ticks")
                for number in range(0 if done is None else done + 1, 4):
                    rows = ticks(number * 10, number * 10 + 10)
                    engine.enqueue("ticks", rows, position=number)
                    engine.drain()
            engine.finish()
            results = taken(engine, "counts")
            left[0] = 0
            engine.attach("p0", lambda arc: arc, name="all")
            engine.drain()
            assert taken(engine, "all") == expected(40)["both"]
            break
    assert results == counts(40)


def test_what_only_spark_can_compute_keeps_the_window_apart() -> None:
    net = au.Network("kept")
    stream = net.stream("s", "t bigint, word string", progress=au.Ordered("t"))
    some = stream.map(t="t", n="cast(word AS int)", name="some")
    window = au.Window(size=5)
    net.output("sums", some.aggregate(au.Order("t"), window, n="sum(n)", name="summed"))
    net.connection_point("recent", some, keep="all")
    with make_engine(net, train=3) as engine:
        assert [s.boxes for s in engine._loop.execution.superboxes] == [("some",), ("summed",)]
        engine.enqueue("s", [{"t": n, "word": str(n)} for n in range(11)])
        engine.drain()
        assert [row["n"] for row in taken(engine, "sums")] == [10, 35]
        assert engine.stats()["connection_points"]["recent"]["rows"] == 11


@pytest.fixture(name="make_spark_engine")
def spark_engines(request: pytest.FixtureRequest) -> MakeEngine:
    """The fixture `make_engine`, which has the name of the function without Spark."""
    found: MakeEngine = request.getfixturevalue("make_engine")
    return found


@pytest.mark.spark
def test_spark_writes_the_same(make_spark_engine: MakeEngine) -> None:
    with make_spark_engine(network(*POINTS), train=8) as engine:
        engine.enqueue("ticks", ticks(0, 25))
        engine.drain()
        for number in range(len(POINTS)):
            engine.attach(f"p{number}", lambda arc: arc, name=f"a{number}")
        engine.enqueue("ticks", ticks(25, 40))
        engine.finish()
        assert taken(engine, "counts") == counts(40)
        for number, arc in enumerate(POINTS):
            assert taken(engine, f"a{number}") == expected(40)[arc]
