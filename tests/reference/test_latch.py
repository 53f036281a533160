"""Latch: the running aggregates of Linear Road, by tables one can check [4 §4.1]."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral import Network, Ordered
from auroral.reference import Reference
from auroral.testing import run

REPORT = "vid int, seg int, time int, speed double, toll double"


def reports(*rows: tuple[int | None, int, int, float, float]) -> dict[str, Any]:
    return {"reports": list(rows)}


def latched(schema: str, by: list[str], progress: Any = None, **compute: str) -> Network:
    net = Network("road")
    table = net.table("kept", schema, key=by)
    arc = net.stream("reports", REPORT, progress=progress)
    net.output("o", arc.latch(table, by=by, name="latch", **compute))
    return net


def test_each_tuple_gives_the_new_values_of_its_key() -> None:
    net = latched(
        "vid int, paid double, seen int, mean double, n bigint",
        ["vid"], paid="sum(toll)", seen="max(time)", mean="avg(speed)", n="count(*)",
    )  # fmt: skip
    given = reports((1, 0, 5, 60.0, 2.0), (2, 0, 6, 50.0, 5.0), (1, 1, 4, 30.0, 1.5))
    assert [tuple(row.values()) for row in run(net, given)["o"]] == [
        (1, 2.0, 5, 60.0, 1),
        (2, 5.0, 6, 50.0, 1),
        (1, 3.5, 5, 45.0, 2),
    ]


def test_first_last_distinct_and_filtered_values() -> None:
    net = latched(
        "seg int, f int, l int, d bigint, fast bigint",
        ["seg"], f="first(vid)", l="last(vid)", d="count(DISTINCT vid)",
        fast="count(*) FILTER (WHERE speed > 50)",
    )  # fmt: skip
    given = reports((1, 0, 0, 60.0, 0.0), (2, 0, 1, 10.0, 0.0), (1, 0, 2, 70.0, 0.0))
    assert [tuple(row.values()) for row in run(net, given)["o"]] == [
        (0, 1, 1, 1, 1),
        (0, 1, 2, 2, 1),
        (0, 1, 1, 2, 2),
    ]


def test_arithmetic_on_aggregates() -> None:
    net = latched("seg int, per_report double", ["seg"], per_report="sum(toll) / count(*)")
    given = reports((1, 0, 0, 0.0, 4.0), (2, 0, 0, 0.0, 1.0))
    assert [row["per_report"] for row in run(net, given)["o"]] == [4.0, 2.5]


def test_null_is_a_key_and_equal_keys_look_the_same() -> None:
    net = Network("keys")
    table = net.table("kept", "k double, n bigint", key=["k"])
    net.output("o", net.stream("s", "k double").latch(table, by=["k"], n="count(*)"))
    given = [(None,), (0.0,), (-0.0,), (math.nan,), (None,), (-math.nan,)]
    rows = [(repr(row["k"]), row["n"]) for row in run(net, {"s": given})["o"]]
    assert rows == [("None", 1), ("0.0", 1), ("0.0", 2), ("nan", 1), ("None", 2), ("nan", 2)]


def test_what_is_promised_of_the_key_passes() -> None:
    net = latched("time int, n bigint", ["time"], Ordered("time"), n="count(*)")
    reference = Reference(net)
    reference.push("reports", (1, 0, 7, 0.0, 0.0))
    assert reference.mark("latch", "time") == 7
    other = latched("vid int, t int", ["vid"], Ordered("time"), t="max(time)")
    assert Reference(other).promises("latch") == {}


@pytest.mark.parametrize("by", [(), ("vid",)])
def test_marks_of_groups_pass_if_the_groups_are_keys(by: tuple[str, ...]) -> None:
    net = latched(
        "vid int, time int, n bigint", ["vid", "time"], Ordered("time", by=by), n="count(*)"
    )
    reference = Reference(net)
    reference.push("reports", (1, 0, 7, 0.0, 0.0))
    assert reference.mark("latch", "time", (1,) if by else ()) == 7


def test_a_tuple_enters_when_the_one_it_is_made_of_did() -> None:
    reference = Reference(latched("vid int, n bigint", ["vid"], n="count(*)"))
    for at in (1, 2, 30):
        reference.push("reports", (1, 0, 0, 0.0, 0.0), at=at)
    assert [made.entered_us for made in reference.tuples("o")] == [1_000_000, 2_000_000, 30_000_000]
    assert reference.held("latch") == 1


@given(st.lists(st.tuples(st.sampled_from([None, 1, 2]), st.integers(-5, 5)), max_size=30))
def test_the_last_row_of_a_key_is_the_aggregate_of_all(rows: list[tuple[int | None, int]]) -> None:
    net = Network("law")
    table = net.table("kept", "k int, total bigint, least int", key=["k"])
    arc = net.stream("s", "k int, v int")
    net.output("o", arc.latch(table, by=["k"], total="sum(v)", least="min(v)"))
    made = run(net, {"s": rows})["o"]
    assert [row["k"] for row in made] == [k for k, _ in rows]
    for key in {k for k, _ in rows}:
        mine = [v for k, v in rows if k == key]
        last = [row for row in made if row["k"] == key][-1]
        assert (last["total"], last["least"]) == (sum(mine), min(mine))
