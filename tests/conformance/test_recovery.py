"""Sources, functions and outputs: as if nothing had happened, whenever the process dies."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from auroral import Network
from auroral.network.arc import Arc
from auroral.testing import Collector, ScriptedSource, run

from .running import Crash, Faults, MakeEngine, plain

pytestmark = pytest.mark.spark

FUNCTIONS = """
import pyarrow as pa

def picky(n: pa.Array) -> pa.Array:
    if 3 in n.to_pylist():
        raise ValueError("no threes")
    return pa.array([None if v is None else v * 10 for v in n.to_pylist()], pa.int32())
"""
CRASHES: list[frozenset[int]] = [frozenset(), *(frozenset((n, n + 9)) for n in range(0, 18, 3))]


def merging(*, directory: Path | None = None) -> Network:
    """Two streams that meet, one of them by two paths."""
    net = Network("merging", directory=directory)
    a, b = (net.stream(name, schema="n int") for name in "ab")
    net.output("o", net.union(b, a.filter("n > 2"), a))
    return net


def given(**columns: list[int]) -> dict[str, list[dict[str, int]]]:
    return {name: [{"n": n} for n in values] for name, values in columns.items()}


@pytest.mark.parametrize("crashes", CRASHES, ids=str)
@pytest.mark.parametrize("timed", [False, True], ids=["in turn", "by time"])
def test_sources_go_on_where_they_were(
    make_engine: MakeEngine, tmp_path: Path, crashes: frozenset[int], timed: bool
) -> None:
    net = merging()
    inputs: dict[str, list[dict[str, Any]]] = dict(given(a=[1, 2, 3, 4, 5], b=[10, 20, 30]))
    if timed:
        for rows, times in zip(inputs.values(), ([0, 0, 2, 5, 5], [0, 1, 5]), strict=True):
            rows[:] = [{**row, "_at": at} for row, at in zip(rows, times, strict=True)]
    faults, sink = Faults(crashes), Collector()
    while True:
        sources = [ScriptedSource(net, name, rows) for name, rows in inputs.items()]
        bind = [*sources, ("o", sink)]
        with (
            contextlib.suppress(Crash),
            make_engine(
                net, bind=bind, state=tmp_path, train=3, clock="arrival", fault=faults
            ) as engine,
        ):
            engine.drain()
            break
    assert sink.rows == run(net, inputs)["o"]


@pytest.mark.parametrize("crashes", CRASHES[:3], ids=str)
def test_tuples_a_function_fails_on_are_dead_once(
    make_engine: MakeEngine, tmp_path: Path, crashes: frozenset[int]
) -> None:
    (tmp_path / "picky_functions.py").write_text(FUNCTIONS)
    net = Network("picky", directory=tmp_path)
    mapped = net.stream("s", schema="n int").map(
        keep="*", name="m", m={"udf": "picky_functions:picky", "returns": "int"}
    )
    net.output("o", mapped)
    inputs = given(s=[1, 3, 2, 3, 4])
    expected = run(net, inputs)
    faults, sink = Faults(crashes), Collector()
    letters = tmp_path / "letters.jsonl"
    while True:
        source = ScriptedSource(net, "s", inputs["s"])
        state = tmp_path / "state"
        with (
            contextlib.suppress(Crash),
            make_engine(
                net, bind=[source, ("o", sink)], state=state, train=2, fault=faults,
                dead_letters=letters,
            ) as engine,
        ):  # fmt: skip
            engine.drain()
            assert engine.stats()["boxes"]["m"]["dead"] == 2
            break
    assert sink.rows == expected["o"]
    found = [json.loads(line) for line in letters.read_text().splitlines()]
    ours = [(d.source, d.place, d.reason, json.loads(d.row)) for d in expected.dead_letters]
    assert [(d["source"], d["place"], d["reason"], json.loads(d["row"])) for d in found] == ours


@pytest.mark.parametrize("train", [1, 4, 1000])
def test_a_thread_of_its_own_gives_the_same(make_engine: MakeEngine, train: int) -> None:
    net = merging()
    batches = [("a", [1, 2, 3]), ("b", [10]), ("a", [4]), ("b", [20, 30]), ("a", [5, 6])]
    with make_engine(net, background=True, train=train) as engine:
        for stream, values in batches:
            engine.enqueue(stream, [(value,) for value in values])
        engine.drain(timeout_s=60)
        found = engine.dequeue("o").to_pylist()
        assert engine.dequeue("o").num_rows == 0
    # The whole order of arrival as one stream's would be: by time.
    arrivals = [(s, n) for s, values in batches for n in values]
    inputs: dict[str, list[dict[str, int]]] = {"a": [], "b": []}
    for at, (stream, n) in enumerate(arrivals):
        inputs[stream].append({"n": n, "_at": at})
    assert found == run(net, inputs)["o"]


def doubled(net: Network) -> Arc:
    """Tuples of b by two paths, of a by one: the order within a moment matters for b only."""
    a, b = (net.stream(name, schema="n int") for name in "ab")
    return net.union(net.union(a, b), b)


def test_an_output_that_nobody_reads_is_merged_in_order(make_engine: MakeEngine) -> None:
    net = Network("unread")
    net.output("o", doubled(net))
    expected: list[dict[str, Any]] = []
    with make_engine(net) as engine:
        for n in range(70):
            engine.enqueue("b" if n % 3 == 0 else "a", [(n,)])
            expected += [{"n": n}] * (2 if n % 3 == 0 else 1)
            engine.drain()
        assert len(engine._store.segments("union_2")) < 70
        assert engine.dequeue("o").to_pylist() == expected


def test_merging_gives_no_reader_a_tuple_twice(make_engine: MakeEngine) -> None:
    net = Network("shared")
    arc = net.stream("s", schema="n int")
    net.output("eager", arc)
    net.output("lazy", arc)
    eager: list[dict[str, Any]] = []
    with make_engine(net) as engine:
        for n in range(70):
            engine.enqueue("s", [(n,)])
            engine.drain()
            if n < 40:
                eager += engine.dequeue("eager").to_pylist()
        eager += engine.dequeue("eager").to_pylist()
        rows = [{"n": n} for n in range(70)]
        assert engine.dequeue("lazy").to_pylist() == rows
        assert eager == rows


def test_a_port_that_nothing_can_reach_stays_empty(make_engine: MakeEngine) -> None:
    net = Network("constant")
    kept = net.stream("s", schema="n int").filter("true", name="f")
    net.output("rest", kept.rest)
    with make_engine(net) as engine:
        engine.enqueue("s", [(1,), (2,)])
        engine.drain()
        assert engine.dequeue("rest").num_rows == 0


def test_a_session_with_other_settings_gives_the_same(make_engine: MakeEngine, spark: Any) -> None:
    net = Network("settings")
    net.output("o", net.stream("s", schema="s string, n int").map(q="n / 0", c="CAST(s AS int)"))
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        with make_engine(net) as engine:
            engine.enqueue("s", [("x", 1), ("7", 2)])
            engine.drain()
            found = engine.dequeue("o").to_pylist()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "false")
    rows = [{"s": "x", "n": 1}, {"s": "7", "n": 2}]
    assert plain(found) == plain(run(net, {"s": rows})["o"])
