"""Windows behind fields that maps compute: they close, and everywhere at the same moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from auroral import Delayed, Network, Order, Window
from auroral.testing import run

from . import sparkless
from .running import MakeEngine

EVENT = "n int, x bigint, f double, c decimal(10,2), t timestamp, g int"
FORMS: dict[str, tuple[str, str, Any]] = {
    # name: the field that makes progress, the expression, the window's size
    "plus": ("n", "n + 5", 10),
    "plus_before": ("n", "5 + n", 10),
    "minus": ("x", "x - 5", 10),
    "twice": ("n", "n * 2", 20),
    "whole": ("x", "x div 4", 2),
    "halves": ("n", "n / 4", 2.0),
    "floor": ("f", "floor(f)", 5),
    "ceil": ("f", "ceil(f)", 5),
    "round": ("f", "round(f)", 5.0),
    "exact": ("c", "c + 1.5", 5),
    "minute": ("t", "date_trunc('minute', t)", "2 minutes"),
    "later": ("t", "t + INTERVAL 90 SECONDS", "1 minute"),
    "as_double": ("n", "cast(n as double)", 5.0),
    "as_date": ("t", "cast(t + INTERVAL 86000 SECONDS as date)", "1 day"),
    "as_stamp": ("t", "cast(cast(t + INTERVAL 86000 SECONDS as date) as timestamp)", "1 hour"),
    "seconds": ("t", "cast(t as long)", 60),
    "unix": ("t", "unix_timestamp(t)", 60),
    "nested": ("x", "floor((x + 3) / 4) * 4", 4),
}
ON_SPARK = ("plus", "twice", "floor", "exact", "minute", "as_date")


def network(form: str) -> Network:
    on, text, size = FORMS[form]
    net = Network("derived")
    stream = net.stream("s", EVENT, progress=Delayed(on, "20 s" if on == "t" else 2))
    made = stream.map(made=text, g="g", name="m")
    windows = made.aggregate(Order("made", by=("g",)), Window(size=size), n="count(*)", name="w")
    net.output("out", windows)
    net.output("late", windows.late)
    return net


def rows() -> list[dict[str, Any]]:
    """Values of every field that grow, more or less; some are late, some NULL."""
    found: list[dict[str, Any]] = []
    for at, back in enumerate([0, 0, 1, 0, 0, 2, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 8, 0, 0, 0]):
        n = 2 * at - back
        t = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=20 * n)
        found.append({"n": n, "x": n, "f": n + 0.5, "c": Decimal(n) / 2, "t": t, "g": at % 2})
    found.insert(7, {"g": 1})
    return found


@pytest.mark.parametrize("form", FORMS)
def test_windows_close_behind_a_computed_field(form: str) -> None:
    held = run(network(form), {"s": rows()}, hold=True)
    assert held["out"]
    assert held["late"]


@pytest.mark.parametrize("train", [1, 3, 50])
@pytest.mark.parametrize("form", FORMS)
def test_every_train_gives_what_the_reference_gives(
    form: str, train: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _compared(sparkless.make_engine, form, train)


@pytest.mark.spark
@pytest.mark.parametrize("form", ON_SPARK)
def test_spark_gives_what_the_reference_gives(make_engine: MakeEngine, form: str) -> None:
    _compared(make_engine, form, 7)


def _compared(make_engine: MakeEngine, form: str, train: int) -> None:
    net, given = network(form), rows()
    expected = run(net, {"s": given}, hold=True)
    with make_engine(net, train=train) as engine:
        engine.enqueue("s", given)
        engine.drain()
        for output in ("out", "late"):
            assert engine.dequeue(output).to_pylist() == expected[output]


def pairs(greatest: bool) -> Network:
    net = Network("pairs")
    left, right = (net.stream(name, "t int", progress=Delayed("t", 1)) for name in "lr")
    joined = left.join(right, left=Order("t"), right=Order("t"), within=20, name="j")
    text = "greatest(t, right_t)" if greatest else "least(t, right_t)"
    both = joined.map(m=text, name="m")
    net.output("out", both.aggregate(Order("m"), Window(size=10), n="count(*)", name="w"))
    return net


@pytest.mark.parametrize(("greatest", "closed"), [(True, [0, 10, 20, 30]), (False, [0, 10])])
def test_the_greatest_and_the_least_of_a_pair_close_windows(
    greatest: bool, closed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    net = pairs(greatest)
    rows = [{"t": t} for t in range(0, 45, 2)]
    expected = run(net, {"l": rows, "r": rows}, hold=True)["out"]
    assert [row["m"] for row in expected] == closed
    for train in (1, 4, 100):
        with sparkless.make_engine(net, train=train) as engine:
            for row in rows:
                engine.enqueue("l", [row])
                engine.enqueue("r", [row])
            engine.drain()
            assert engine.dequeue("out").to_pylist() == expected


def test_windows_of_queries_close_behind_a_computed_field(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = Network("queries")
    stream = net.stream("s", "ts int, v int", progress=Delayed("ts", 2))
    stream.map(keep="*", minute="ts div 60", name="m")
    # Without WA the window is over the field that the map has copied.
    net.query("plain", "SELECT count(*) AS n FROM m [RANGE 60]")
    net.query("minutes", "SELECT minute, count(*) AS n FROM m [RANGE 2, WA minute] GROUP BY minute")
    rows = [{"ts": ts, "v": 1} for ts in range(0, 600, 20)]
    expected = run(net, {"s": rows}, hold=True)
    assert len(expected["plain"]) == 9
    assert len(expected["minutes"]) == 4
    with sparkless.make_engine(net, train=4) as engine:
        engine.enqueue("s", rows)
        engine.drain()
        for name in ("plain", "minutes"):
            assert engine.dequeue(name).to_pylist() == expected[name]
