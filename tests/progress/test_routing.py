"""Streams that let late tuples leave: `below: route`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auroral import Delayed, Network, Order, Ordered, Punctuated, Window
from auroral.errors import NetworkError
from auroral.testing import Results, punctuation, run

NAN = float("nan")


def network(progress: Any) -> Network:
    net = Network("routed")
    net.stream("s", "a double, b int, g int", progress=progress)
    return net


def ran(progress: Any, rows: list[Any]) -> Results:
    return run(network(progress), {"s": rows}, hold=True)


def values(rows: list[dict[str, Any]], field: str = "a") -> list[Any]:
    return ["nan" if row[field] != row[field] else row[field] for row in rows]


def test_what_is_below_the_mark_leaves() -> None:
    out = ran(Delayed("a", 5, below="route"), [(n, 0, 0) for n in (1, 10, 4, 5, 20, 14, 15)])
    assert values(out["s"]) == [1, 10, 5, 20, 15]
    assert values(out["s.late"]) == [4, 14]
    assert out.reference.late == {("s", "late"): 2}
    assert out.reference.mark("s", "a") == 15
    assert out.reference.mark("s.late", "a") is None


def test_what_has_no_place_in_the_order_passes() -> None:
    odd = (None, NAN, float("inf"), float("-inf"))
    out = ran(Ordered("a", below="route"), [(n, 0, 0) for n in (7, *odd, 6)])
    assert values(out["s"]) == [7, None, "nan", float("inf"), float("-inf")]
    assert values(out["s.late"]) == [6]


def test_a_tuple_is_judged_by_the_mark_of_its_group() -> None:
    rows = [(9, 0, 1), (3, 0, 2), (4, 0, 1), (2, 0, 2), (1, 0, None), (0, 0, None)]
    out = ran(Ordered("a", by=("g",), below="route"), rows)
    assert values(out["s"]) == [9, 3, 1]
    assert values(out["s.late"]) == [4, 2, 0]


def test_punctuations_judge_what_comes_after_them() -> None:
    rows = [(5, 0, 0), (3, 0, 0), punctuation(4), (3, 0, 0), (4, 0, 0)]
    out = ran(Punctuated("a", below="route"), rows)
    assert values(out["s"]) == [5, 3, 4]
    assert values(out["s.late"]) == [3]


@pytest.mark.parametrize(
    ("routed", "late"), [((0,), [(1, 9)]), ((1,), [(9, 1)]), ((0, 1), [(1, 9), (9, 1)])]
)
def test_below_any_of_the_marks_that_say_so(
    routed: tuple[int, ...], late: list[tuple[int, int]]
) -> None:
    entries = [
        Ordered("a", below="route" if 0 in routed else None),
        Delayed("b", 3, below="route" if 1 in routed else None),
    ]
    out = ran(entries, [(5, 5, 0), (1, 9, 0), (9, 1, 0), (9, 6, 0)])
    assert [(row["a"], row["b"]) for row in out["s.late"]] == late
    assert len(out["s"]) == 4 - len(late)


def test_whatever_reads_the_stream_reads_what_has_entered() -> None:
    net = network(Ordered("b", below="route"))
    arc = net.box("filter", "f", input="s", where="b >= 0")
    net.output("f", arc)
    net.output("late", "s.late")
    net.box("map", "m", input="s.late", keep="*")
    net.output("m", "m")
    windows = arc.aggregate(Order("b"), Window(size=10), n="count(*)", name="w")
    net.output("w", windows)
    net.query("q", "SELECT count(*) AS n FROM s [RANGE 10, WA b]")
    net.query("late_ones", "SELECT b FROM s.late WHERE b > 1")
    out = run(net, {"s": [(0, b, 0) for b in (3, 12, 2, 1, 25)]}, hold=True)
    assert values(out["f"], "b") == [3, 12, 25]
    assert values(out["late"], "b") == values(out["m"], "b") == [2, 1]
    assert [row["n"] for row in out["w"]] == [row["n"] for row in out["q"]] == [1, 1]
    assert out["late_ones"] == [{"b": 2}]
    assert out["w.late"] == []


def test_files_and_builders_say_the_same(tmp_path: Path) -> None:
    entries = [Delayed("a", 5, below="route"), Ordered("b"), Punctuated("g", below="route")]
    net = network(entries)
    assert net.document()["streams"]["s"]["progress"] == [
        {"on": "a", "delay": 5, "below": "route"},
        {"on": "b", "ordered": True},
        {"on": "g", "punctuated": True, "below": "route"},
    ]
    net.output("late", "s.late")
    net.save(tmp_path / "net.yaml")
    loaded = Network.load(tmp_path / "net.yaml")
    assert loaded == net
    assert str(loaded.check().arcs["s.late"].schema) == "a double, b int, g int"
    assert list(loaded.check().arcs) == ["s", "s.late"]


def test_only_a_stream_that_routes_has_late_tuples() -> None:
    net = network(Ordered("a"))
    net.output("late", "s.late")
    with pytest.raises(NetworkError, match=r"there is no arc s\.late; there are s"):
        net.check()


def test_what_else_is_done_below_the_mark_is_refused() -> None:
    with pytest.raises(NetworkError, match="below"):
        network({"on": "a", "ordered": True, "below": "drop"})


def test_rows_are_counted_where_all_of_them_enter() -> None:
    net = network(Ordered("a", below="route"))
    with pytest.raises(NetworkError, match="with below: route late ones leave it before"):
        net.box("number", "n", input="s", **{"as": "nr"})
    net.query("q", "SELECT count(*) AS n FROM s [ROWS 3]")
    with pytest.raises(NetworkError, match=r"\[ROWS n\] reads a stream, not s") as raised:
        net.check()
    assert "below: route" in (raised.value.hint or "")
