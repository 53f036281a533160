"""Corrections of `late: revise` reach no box or query that would count them twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auroral import Network, Order, Ordered, Window
from auroral.errors import NetworkError
from auroral.network.arc import Arc
from auroral.testing import run

ORDER, TEN = Order("t"), Window(size=10)


def revising(*, late: bool = True) -> tuple[Network, Arc]:
    net = Network("corrected")
    s = net.stream("s", schema="t int, x int", progress=Ordered("t"))
    how: Any = {"late": "revise", "history": 100} if late else {}
    return net, s.aggregate(ORDER, TEN, name="w", x="sum(x)", **how)


PATHS: dict[str, Callable[[Arc], Arc]] = {
    "directly": lambda w: w,
    "filter": lambda w: w.filter("x > 0"),
    "the rest of a filter": lambda w: w.filter("x > 0").rest,
    "map that drops the flag": lambda w: w.map(keep=("t", "x")),
    "union": lambda w: w.map(keep=("t", "x")).union(w.map(keep=("t", "x"))),
    "sort": lambda w: w.bsort(ORDER),
    "several": lambda w: w.filter("x > 0").map(keep=("t", "x")).bsort(ORDER).filter("x > 1"),
}
READERS: dict[str, Callable[[Arc], Arc]] = {
    "aggregate": lambda arc: arc.aggregate(ORDER, Window(size=100), x="sum(x)", name="reader"),
    "tuple numbers": lambda a: a.aggregate(Order("tup#"), TEN, x="sum(x)", name="reader"),
    "join": lambda a: a.join(Arc(a.network, "s"), left=ORDER, right=ORDER, within=1, name="reader"),
    "resample": lambda a: a.resample(
        Arc(a.network, "s"), left=ORDER, right=ORDER, within=1, n="count(*)", name="reader"
    ),
    "dedup": lambda arc: arc.dedup("t", order=ORDER, name="reader"),
    "latch": lambda a: a.latch(
        a.network.table("sums", "t int, n bigint", key=["t"]), by=["t"], n="count(*)", name="reader"
    ),
    "wait_for": lambda a: a.wait_for(Arc(a.network, "s"), "true", timeout=1, name="reader"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("path", PATHS)
def test_a_box_that_remembers_refuses_corrections(path: str, reader: str) -> None:
    _, w = revising()
    arc = PATHS[path](w)
    with pytest.raises(NetworkError) as error:
        READERS[reader](arc)
    text = str(error.value)
    assert error.value.code == "REVISIONS_NOT_SUPPORTED"
    assert "reader" in text
    assert "that w makes" in text
    assert "drop late: revise" in text


@pytest.mark.parametrize("path", PATHS)
def test_without_corrections_all_of_them_are_taken(path: str) -> None:
    net, w = revising(late=False)
    READERS["aggregate"](PATHS[path](w))
    assert net.check().arcs["reader"].revised_by is None


def test_what_carries_corrections_is_known_of_each_arc() -> None:
    net, w = revising()
    w.filter("x > 0", name="f").map(keep=("t",), name="m")
    found = {name: arc.revised_by for name, arc in net.check().arcs.items()}
    assert found == {"s": None, "w": "w", "w.late": None, "f": "w", "f.rest": "w", "m": "w"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t, sum(x) AS x FROM w [RANGE 100, WA t]",
        "SELECT t, collect_list(x) AS x FROM w [RANGE 100, WA t]",
        "SELECT w.t FROM w [RANGE 5, WA t], s [RANGE 5, WA t] WHERE w.x = s.x",
    ],
)
def test_a_query_that_remembers_refuses_corrections(sql: str) -> None:
    net, _ = revising()
    net.query("q", sql)
    with pytest.raises(NetworkError, match="REVISIONS_NOT_SUPPORTED: query q"):
        net.check()


def test_a_query_that_selects_takes_them() -> None:
    net, _ = revising()
    net.query("q", "SELECT t, x FROM w WHERE x > 3")
    out = run(net, {"s": [(1, 5), (12, 1), (2, 6)]})
    assert [(row["t"], row["x"]) for row in out["q"]] == [(0, 5), (0, 11)]


def test_a_join_with_a_table_passes_them_on() -> None:
    net, w = revising()
    names = net.table("names", schema="x int, name string")
    w.join(names, "left.x = right.x", name="named")
    assert net.check().arcs["named"].revised_by == "w"


FILE = """
network: corrected
streams:
  s: {schema: {t: int, x: int}, progress: {on: t, ordered: true}}
boxes:
  w: {box: aggregate, input: s, order: {on: t}, window: {size: 10}, compute: {x: sum(x)},
      late: revise, history: 100}
  plain: {box: map, input: w, keep: [t, x]}
  reader: {box: aggregate, input: plain, order: {on: t}, window: {size: 10}, compute: {n: count(*)}}
"""


def test_a_file_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "net.yaml"
    file.write_text(FILE)
    with pytest.raises(NetworkError, match=r"REVISIONS_NOT_SUPPORTED: .*net.yaml:9, box reader"):
        Network.load(file).check()
