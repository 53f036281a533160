"""A tuple visits each filter once, unless joins and aggregates need it by several keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest

import auroral as au
import auroral.engine.starting
import auroral.spark.running.stateful_runner
from tests.conformance import sparkless

ROWS = 5000
FEW = 100
"""So many tuples come first, in a train of their own."""
QUERIES = {
    "select": "SELECT n, x FROM a WHERE x > 50",
    "count": "SELECT n FROM a WHERE x > 50",
    "join": "SELECT a.x, b.y FROM a [ROWS 100], b [ROWS 100] WHERE a.k = b.k AND x > 50",
    "other": "SELECT a.x, b.y FROM a [ROWS 100], b [ROWS 100] WHERE a.x = b.y AND x > 50",
    "total": "SELECT count(*) AS c FROM a [RANGE 100, WA n] WHERE x > 50",
    "by_key": "SELECT k, count(*) AS c FROM a [RANGE 100, WA n] WHERE x > 50 GROUP BY k",
}
TOGETHER = [
    "select",
    "join",
    "total",
    "by_key",
    "select join",
    "count join",
    "select count by_key",
]
BY_KEYS = ["join other", "select join other"]
ALL = [*TOGETHER, *BY_KEYS, "select total", "select join other total by_key"]


def network(names: str, test: str = "x > 50") -> au.Network:
    net = au.Network("visits")
    for stream, field in (("a", "x"), ("b", "y")):
        net.stream(stream, f"n bigint, k int, {field} int", progress=au.Ordered("n"))
    for name in names.split():
        text = QUERIES[name].replace("x > 50", test)
        net.query(name, text, results="count" if name == "count" else "keep")
    return net


def tuples(field: str) -> pa.Table:
    numbers = range(ROWS)
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "k": pa.array([n * 7 % 1000 for n in numbers], pa.int32()),
            field: pa.array([n * 37 % 101 for n in numbers], pa.int32()),
        }
    )


def calling(names: str) -> tuple[au.Network, list[int]]:
    """The same with a Python predicate, and what it is called with."""
    called: list[int] = []

    def high(x: pa.Array) -> pa.Array:
        called.extend(x.to_pylist())
        return pa.array([value > 50 for value in x.to_pylist()])

    net = network(names, "high(x)")
    net.function("high", high, returns="boolean")
    return net, called


@contextmanager
def fed(net: au.Network) -> Iterator[au.Engine]:
    with sparkless.make_engine(net, train=2 * ROWS) as engine:
        for start, rows in ((0, FEW), (FEW, ROWS)):
            for stream, field in (("a", "x"), ("b", "y")):
                engine.enqueue(stream, tuples(field).slice(start, rows))
            engine.drain()
        yield engine


@pytest.fixture(params=[0, 50_000], ids=["a task each", "one task"])
def buckets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auroral.engine.starting, "default_buckets", lambda _cores: 3)
    monkeypatch.setattr(auroral.spark.running.stateful_runner, "PARALLEL_ROWS", request.param)


@pytest.mark.usefixtures("buckets")
@pytest.mark.parametrize("names", TOGETHER)
def test_a_tuple_is_counted_once_and_visits_a_filter_once(names: str) -> None:
    with fed(network(names)) as engine:
        (eddy,) = engine.stats()["eddies"].values()
    told = eddy["arcs"]["a"]
    passing = sum(value > 50 for value in tuples("x")["x"].to_pylist())
    assert told["tuples"] == ROWS
    assert told["filters_per_tuple"] == 1.0
    assert told["filters"]["x"]["routed"] == ROWS
    assert told["filters"]["x"]["returned"] == pytest.approx(passing, rel=0.15)


@pytest.mark.usefixtures("buckets")
@pytest.mark.parametrize("names", BY_KEYS)
def test_a_filter_is_visited_in_each_bucket_that_needs_a_tuple(names: str) -> None:
    net, called = calling(names)
    with fed(net) as engine:
        (eddy,) = engine.stats()["eddies"].values()
    told = eddy["arcs"]["a"]
    assert told["tuples"] == ROWS
    assert ROWS < len(called) < 2 * ROWS
    routed = told["filters"]["high(x)"]["routed"]
    assert routed == pytest.approx(len(called), rel=0.05)
    assert told["filters_per_tuple"] == pytest.approx(routed / ROWS, rel=0.01)


@pytest.mark.usefixtures("buckets")
@pytest.mark.parametrize("names", ["total", "by_key", "select join"])
def test_samples_are_of_all_tuples_of_a_train(names: str) -> None:
    train = tuples("x").slice(FEW)
    at = np.linspace(0, train.num_rows - 1, 500).astype(int)
    with fed(network(names)) as engine:
        samples = engine._queries.query_index.parts("a").statistics.samples
    assert samples["x"].to_pylist() == train["x"].take(pa.array(at)).to_pylist()


@pytest.mark.usefixtures("buckets")
@pytest.mark.parametrize("names", [names for names in ALL if "select" in names])
def test_results_of_selections_are_in_order(names: str) -> None:
    expected = [row for row in tuples("x").select(["n", "x"]).to_pylist() if row["x"] > 50]
    with fed(network(names)) as engine:
        assert engine.dequeue("select").to_pylist() == expected
        assert engine.stats()["queries"]["select"]["matches"] == len(expected)


@pytest.mark.usefixtures("buckets")
@pytest.mark.parametrize("names", ["select", "join", "select join", "select count join"])
def test_a_function_is_called_once_for_a_tuple(names: str) -> None:
    net, called = calling(names)
    with fed(net):
        assert len(called) == ROWS


@pytest.mark.usefixtures("buckets")
@pytest.mark.parametrize("names", ["select count", "select count join", "select join other"])
def test_a_tuple_that_fails_counts_once_for_each_query(names: str) -> None:
    def high(x: pa.Array) -> pa.Array:
        if 7 in x.to_pylist():
            raise ValueError("seven")
        return pa.array([value > 50 for value in x.to_pylist()])

    net = network(names, "high(x)")
    net.function("high", high, returns="boolean")
    sevens = tuples("x")["x"].to_pylist().count(7)
    with fed(net) as engine:
        told = engine.stats()["queries"]
    assert {name: told[name]["errors"] for name in told} == dict.fromkeys(names.split(), sevens)
