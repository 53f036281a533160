"""What Spark cannot compute is NULL, and stops nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import auroral as au

if TYPE_CHECKING:
    from tests.conftest import MakeEngine

pytestmark = pytest.mark.spark

T = datetime(2024, 3, 1, 8, tzinfo=UTC)
ROWS = [
    (1, "a-b", "(a)", T),
    (0, "a-b", "((", T),
    (0, "a-b", "((", T),
    (7, "c", "c", T),
    (1, "a-b", "(a)", T),
]
"""id, kind, unit, at: good, bad twice, good again."""


def network(**boxes: Any) -> au.Network:
    net = au.Network("attempts")
    net.stream("r", "id int, kind string, unit string, at timestamp, big bigint")
    for name, box in boxes.items():
        net.box(box.pop("box"), name, input="r", **box)
    return net


def rows(engine: au.Engine) -> None:
    engine.enqueue("r", [(*row, row[0] * 2**60) for row in ROWS])
    engine.drain()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("split_part(kind, '-', id)", ["a", None, None, "", "a"]),
        ("kind RLIKE unit", [True, None, None, True, True]),
        ("regexp_replace(kind, unit, 'x')", ["x-b", None, None, "x", "x-b"]),
        ("regexp_extract(kind, unit, 0)", ["a", None, None, "c", "a"]),
        ("sequence(id, 5, 1)[0]", [1, 0, 0, None, 1]),
        ("to_number(kind, '999')", [None] * 5),
        ("from_utc_timestamp(at, kind)", [None] * 5),
        ("decode(unhex('41'), kind)", [None] * 5),
        ("element_at(split(kind, '-'), id)", ["a", None, None, None, "a"]),
        ("size(map(kind, 1, if(id = 0, kind, 'z'), id))", [2, 1, 1, 2, 2]),
        (
            "upper(split_part(kind, '-', id)) || split_part(kind, '-', id)",
            ["Aa", None, None, "", "Aa"],
        ),
        ("unix_seconds(timestamp_seconds(big))", [None, 0, 0, None, None]),
        ("year(timestamp_micros(big) + INTERVAL 100000 YEARS) > 0", [True] * 3 + [None, True]),
        ("id LIKE substr('1\\\\', id + 1)", [None, None, None, False, None]),
    ],
)
def test_a_value_that_cannot_be_computed_is_null(
    make_engine: MakeEngine, text: str, expected: list[Any]
) -> None:
    net = network(
        m={"box": "map", "compute": {"x": text, "y": f"coalesce(({text}) IS NULL, true)"}},
        n={"box": "filter", "where": f"({text}) IS NOT NULL"},
    )
    net.output("o", "m")
    net.output("p", "n")
    net.output("q", "n.rest")
    with make_engine(net) as engine:
        rows(engine)
        assert engine.dequeue("o")["x"].to_pylist() == expected
        there = len(expected) - expected.count(None)
        assert engine.dequeue("p").num_rows == there
        assert engine.dequeue("q").num_rows == expected.count(None)


def test_arguments_of_aggregates_and_arithmetic_on_them(make_engine: MakeEngine) -> None:
    net = network()
    net.query(
        "q",
        "SELECT max(split_part(kind, '-', id)) AS a, to_number(max(unit), '9') AS b, "
        "count(*) FILTER (WHERE kind RLIKE unit) AS n FROM r [ROWS 5]",
    )
    with make_engine(net) as engine:
        rows(engine)
        assert engine.dequeue("q").to_pylist()[-1] == {"a": "a", "b": None, "n": 3}


def test_the_rest_of_a_join_s_predicate(make_engine: MakeEngine) -> None:
    net = network()
    net.query("q", "SELECT a.id FROM r [ROWS 1] a, r [ROWS 1] b WHERE a.kind RLIKE b.unit")
    with make_engine(net) as engine:
        rows(engine)
        assert engine.dequeue("q").num_rows > 0


def test_a_map_with_a_null_key_stops_its_box_rather_than_mix_up_tuples(
    make_engine: MakeEngine,
) -> None:
    net = network(m={"box": "map", "compute": {"x": "map(unit, 1, nullif(id, 0), 2)"}})
    net.output("o", "m")
    with make_engine(net) as engine, pytest.raises(au.RunError) as failed:
        rows(engine)
    assert str(failed.value).startswith("SPARK_FAILED: box m: [NULL_MAP_KEY] ")
    assert "\n" not in str(failed.value)


def test_a_query_that_fails_is_told_and_others_go_on(make_engine: MakeEngine) -> None:
    net = network()
    net.query("q", "SELECT map(unit, 1, nullif(id, 0), 2) AS x FROM r")
    net.query("codes", "SELECT split_part(kind, '-', 1) AS x FROM r")
    with make_engine(net) as engine:
        rows(engine)
        told = engine.stats()["queries"]["q"]
        assert told["stopped"]
        assert told["error"].startswith("SPARK_FAILED: query q, box q#1: [NULL_MAP_KEY] ")
        assert engine.dequeue("codes")["x"].to_pylist() == ["a", "a", "a", "c", "a"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kind RLIKE '(('", "Unclosed group near index 2"),
        ("regexp_extract(kind, '(', 1)", "Unclosed group near index 1"),
        ("regexp_replace(kind, '[', 'x')", "Unclosed character class near index 0"),
        ("split(kind, '(')[0]", "Unclosed group near index 1"),
        ("to_timestamp(kind, 'YYYY-bbb')", "DATETIME_WEEK_BASED_PATTERN"),
        ("date_format(at, 'YYYY-bbb')", "DATETIME_WEEK_BASED_PATTERN"),
        ("encode(kind, 'klingon')", "CHARSET"),
        ("kind || decode(unhex(kind), 'klingon')", "CHARSET"),
        ("from_utc_timestamp(at, 'Mars')", "Mars"),
        ("sequence(5, 1, 1)", "Illegal sequence boundaries"),
    ],
)
def test_a_constant_that_can_never_work_is_refused(
    make_engine: MakeEngine, text: str, why: str
) -> None:
    with make_engine(network()) as engine:
        with pytest.raises(au.NetworkError, match=why) as refused:
            engine.modify(add={"q": f"SELECT {text} AS x FROM r"})
        assert refused.value.code == "BAD_EXPRESSION"
        assert "q" in (refused.value.where or "")
        assert "\n" not in refused.value.message


def test_what_works_for_some_data_is_taken(make_engine: MakeEngine) -> None:
    texts = ["map(kind, 1)", "split_part(kind, '-', id)", "sequence(id, 5)"]
    with make_engine(network()) as engine:
        engine.modify(add={f"q{n}": f"SELECT {text} AS x FROM r" for n, text in enumerate(texts)})
