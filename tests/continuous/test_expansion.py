"""What waits for progress that nobody declares, and what it costs to tell."""

from __future__ import annotations

from typing import Any

import pytest

import auroral as au
import auroral.continuous.sharing.sharing
from auroral.continuous.boxing.compiler import CompiledQuery, compile_query
from auroral.continuous.boxing.expansion import expanded, never_closing
from auroral.continuous.boxing.progress import progressing
from auroral.network.check import type_arcs
from tests.effort import operations

_WAITING = {
    "counted": "SELECT sym, count(*) AS c FROM ticks [RANGE 10, WA n] GROUP BY sym",
    "joined": "SELECT t.n FROM ticks [RANGE 5, WA n] AS t, news [RANGE 5, WA at] AS w"
    " WHERE t.sym = w.sym",
}
_AT_ONCE = {
    "all": "SELECT * FROM ticks",
    "some": "SELECT n + 1 AS more FROM ticks WHERE sym = 'A' AND n > 3",
    "windowed": "SELECT n FROM ticks [RANGE 10, WA n]",
    "behind": "SELECT n FROM few WHERE n < 2",
}
_PROMISED = {
    "distinct": "SELECT DISTINCT at, n FROM quotes",
    "rows": "SELECT sum(n) AS s FROM ticks [ROWS 10]",
    "united": "SELECT n FROM ticks UNION few",
}


def _network() -> au.Network:
    net = au.Network("market")
    ticks = net.stream("ticks", "n bigint, sym string")
    net.stream("news", "at bigint, sym string")
    net.stream(
        "quotes", "at bigint, n bigint, sym string", progress=au.Progress(on="at", ordered=True)
    )
    ticks.filter("n < 5", name="few").bsort(au.Order("n"), name="sorted")
    return net


def _with_queries() -> au.Network:
    net = _network()
    for name, sql in (_AT_ONCE | _WAITING | _PROMISED).items():
        net.query(name, sql)
    return net


def test_a_resample_waits_for_its_right_side_only() -> None:
    net = au.Network("sides")
    left = net.stream("left", "a int")
    right = net.stream("right", "b int", progress=au.Ordered("b"))
    a, b = au.Order("a"), au.Order("b")
    left.resample(right, left=a, right=b, within=1, n="count(*)", name="right_promises")
    assert never_closing(net) == []
    right.resample(left, left=b, right=a, within=1, n="count(*)", name="left_promises")
    assert [caution.where for caution in never_closing(net)] == ["box left_promises"]


def test_what_waits_is_told_as_of_the_boxes_that_queries_would_be() -> None:
    found = never_closing(_with_queries())
    # A join waits for nothing: without progress it only keeps what it holds.
    assert [caution.where for caution in found] == ["box sorted", "query counted"]
    assert {caution.code for caution in found} == {"NEVER_CLOSES"}
    assert found == never_closing(expanded(_with_queries()))


def test_what_waits_is_told_by_the_check() -> None:
    net = _network()
    assert [caution.where for caution in net.check().warnings] == ["box sorted"]
    net = au.Network("sound")
    s = net.stream("s", "n bigint")
    s.aggregate(au.Order("n", slack=1), au.Window(size=5), c="count(*)")
    s.aggregate(au.Order("n"), au.Window(size=5, timeout=1), c="count(*)")
    s.dedup("n", order=au.Order("n"))
    s.join(s.filter("n > 0"), left=au.Order("n"), right=au.Order("n"), within=1)
    assert net.check().warnings == ()


def test_a_query_that_only_selects_is_not_compiled_to_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[str] = []

    def counted(name: str, *given: Any, **more: Any) -> CompiledQuery:
        compiled.append(name)
        return compile_query(name, *given, **more)

    net = _with_queries()
    net.check()
    monkeypatch.setattr(auroral.continuous.sharing.sharing, "compile_query", counted)
    never_closing(net)
    assert compiled == [*_WAITING, *_PROMISED]


def test_what_makes_progress_is_found_box_by_box() -> None:
    def effort(count: int) -> float:
        net = au.Network("chain")
        arc = net.stream("s", "n bigint", progress=au.Progress(on="n", ordered=True))
        for number in range(count):
            arc = arc.filter("n > 0", name=f"f{number}")
        arcs, order = type_arcs(net, net.boxes)
        assert progressing(net, arcs, order)[arc.name] == ("n",)
        return operations(lambda: progressing(net, arcs, order)) / count

    assert effort(100) < 1.3 * effort(20)
