"""Queries become boxes: Q1–Q9 as printed, and what else a query can say."""

from __future__ import annotations

from typing import Any

import pytest

import auroral as au
from auroral.continuous.boxing.compiler import compile_query, query_schema
from auroral.continuous.boxing.expansion import expanded
from auroral.network.box import Scope
from auroral.network.types import Schema, quoted
from auroral.sql.queries.names import FromSide, resolve
from auroral.sql.queries.text import Piece

from .queries import ARCS, PACKET, PRINTED, PROGRESS, boxes, compiled

COUNT = {"agg_1": "count(*)"}
PORTS = "left.srcPort = right.destPort AND left.destPort = right.srcPort"
FLOW = f"left.srcIP = right.destIP AND left.destIP = right.srcIP AND {PORTS}"
ON_TS = {"left": {"on": "ts"}, "right": {"on": "ts"}}
MINUTE = {"size": 60, "advance": 60}
RIGHT = ", ".join(f"right_{field}" for field in PACKET.split(", "))

EXPECTED: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "Q1": (
        "column_1 bigint",
        [
            {"box": "union", "inputs": ["Control", "Main1", "Main2"]},
            {"box": "aggregate", "input": "q#1", "order": {"on": "ts"}, "window": MINUTE,
             "compute": {"agg_1": "count (*)"}},
            {"box": "map", "input": "q#2", "compute": {"column_1": "agg_1"}},
        ],
    ),
    "Q2": (
        f"{PACKET}, {RIGHT}",
        [
            {"box": "join", "inputs": ["Main1", "Main2"], **ON_TS, "range": [120, 180],
             "on": "left.srcIP = right.destIP"
                   " AND right.ts > left.ts - 120 AND right.ts < left.ts + 180"},
        ],
    ),
    "Q3": (
        "ts bigint, right_ts bigint, column_3 bigint",
        [
            {"box": "filter", "input": "S0", "where": "flag = ('SYN')"},
            {"box": "filter", "input": "S1", "where": "flag = ('SYN_ACK')"},
            {"box": "join", "inputs": ["q#1", "q#2"], **ON_TS, "range": [120, 120],
             "on": "left.destIP = right.srcIP AND left.destPort = right.srcPort"
                   " AND left.ts < right.ts"
                   " AND right.ts > left.ts - 120 AND right.ts < left.ts + 120"},
            {"box": "aggregate", "input": "q#3", "order": {"on": "ts", "by": ["right_ts"]},
             "window": {"size": 1}, "compute": COUNT},
            {"box": "map", "input": "q#4",
             "compute": {"ts": "ts", "right_ts": "right_ts", "column_3": "agg_1"}},
        ],
    ),
    "Q4": (
        "srcIP bigint, destIP bigint, column_3 bigint",
        [
            {"box": "aggregate", "input": "M", "order": {"on": "ts", "by": ["srcIP", "destIP"]},
             "window": MINUTE, "compute": COUNT},
            {"box": "map", "input": "q#1",
             "compute": {"srcIP": "srcIP", "destIP": "destIP", "column_3": "agg_1"}},
        ],
    ),
    "Q5": (
        "srcIP bigint, destIP bigint, column_3 bigint",
        [
            {"box": "union", "inputs": ["M1", "M2"]},
            {"box": "aggregate", "input": "q#1", "order": {"on": "ts", "by": ["srcIP", "destIP"]},
             "window": MINUTE, "compute": COUNT},
            {"box": "map", "input": "q#2",
             "compute": {"srcIP": "srcIP", "destIP": "destIP", "column_3": "agg_1"}},
        ],
    ),
    "Q6": (
        "srcIP bigint, destIP bigint, ts bigint",
        [
            {"box": "union", "inputs": ["A", "B"]},
            {"box": "union", "inputs": ["C", "D"]},
            {"box": "join", "inputs": ["q#1", "q#2"], **ON_TS, "range": [9, 9],
             "on": f"left.ts div 10 = right.ts div 10 AND {FLOW}"},
            {"box": "map", "input": "q#3",
             "compute": {"srcIP": "srcIP", "destIP": "destIP", "ts": "ts"}},
        ],
    ),
    "Q7": (
        "column_1 bigint",
        [
            {"box": "join", "inputs": ["M1", "M2"], **ON_TS, "range": [5, 5], "on": FLOW},
            {"box": "aggregate", "input": "q#1", "order": {"on": "ts"}, "window": MINUTE,
             "compute": COUNT},
            {"box": "map", "input": "q#2", "compute": {"column_1": "agg_1"}},
        ],
    ),
    "Q8": (
        "srcIP bigint, destIP bigint, ts bigint",
        [
            {"box": "union", "inputs": ["M2", "C"]},
            {"box": "join", "inputs": ["M1", "q#1"], **ON_TS, "range": [0, 0], "on": FLOW},
            {"box": "map", "input": "q#2",
             "compute": {"srcIP": "srcIP", "destIP": "destIP", "ts": "ts"}},
        ],
    ),
    "Q9": (
        "column_1 bigint",
        [
            {"box": "union", "inputs": ["M1", "M2", "C"]},
            {"box": "aggregate", "input": "q#1", "order": {"on": "ts"},
             "window": {"size": 300, "advance": 60}, "compute": COUNT},
            {"box": "map", "input": "q#2", "compute": {"column_1": "agg_1"}},
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PRINTED)
def test_printed_queries_become_boxes(name: str) -> None:
    schema, expected = EXPECTED[name]
    assert boxes(PRINTED[name]) == expected
    made = compiled(PRINTED[name])
    assert str(made.schema) == schema
    assert list(made.boxes) == [f"q#{n}" for n in range(1, len(expected) + 1)]
    assert made.output == f"q#{len(expected)}"


OTHERS = {
    "S": Schema.parse("ts timestamp, a int, b string"),
    "T": Schema.parse("ts timestamp, a int, c double"),
    "f.rest": Schema.parse("a int, `odd name` int"),
}


@pytest.mark.parametrize(
    ("sql", "schema"),
    [
        ("SELECT * FROM S", "ts timestamp, a int, b string"),
        ("FROM S SELECT a WHERE b = 'x'", "a int"),
        ("from S select S.a where S.a > 90 and S.b is not null", "a int"),
        ("SELECT T.* FROM S, T WHERE S.ts = T.ts", "ts timestamp, a int, c double"),
        ("SELECT S.*, T.* FROM S, T WHERE S.ts = T.ts",
         "ts timestamp, a int, b string, right_ts timestamp, right_a int, c double"),
        ("SELECT T.ts, S.ts FROM S, T WHERE S.ts = T.ts", "ts timestamp, left_ts timestamp"),
        ("SELECT b, c FROM S JOIN T ON S.ts = T.ts AND b = 'x'", "b string, c double"),
        ("SELECT x.a FROM S AS x", "a int"),
        ("SELECT x.a FROM S x [RANGE 5 min]", "a int"),
        ("SELECT a one, a AS `two words` FROM S -- both", "one int, `two words` int"),
        ("SELECT b, count(*) AS n FROM S [SLIDE 1 min, RANGE 5 min] GROUP BY b",
         "b string, n bigint"),
        ("SELECT S.b, max(a) AS m FROM S [RANGE 1 min] GROUP BY S.b", "b string, m int"),
        ("SELECT a * 2 AS twice, 1 FROM f.rest", "twice int, column_2 int"),
        ("SELECT rest.a, `odd name` + 1 FROM f.rest", "a int, column_2 int"),
        ("SELECT ts, count(*) FROM S [RANGE 1 min WA ts]", "ts timestamp, column_2 bigint"),
        ("SELECT max(a) - min(a) AS spread FROM S [ROWS 10]", "spread int"),
        ("SELECT count(distinct b) AS n, sum(a) FILTER (WHERE a > 0) AS s FROM S [ROWS 9]",
         "n bigint, s bigint"),
        ("SELECT ts, b, count(*) AS n FROM S GROUP BY ts, b", "ts timestamp, b string, n bigint"),
        ("SELECT upper(b) AS u, count(*) AS n FROM S [RANGE 1 h] GROUP BY u HAVING n > 2",
         "u string, n bigint"),
        ("SELECT DISTINCT b FROM S [RANGE 1 h]", "b string"),
        ("SELECT DISTINCT ts, b FROM S", "ts timestamp, b string"),
        ("SELECT S.a FROM S UNION ALL S AS S WHERE S.a > 1", "a int"),
    ],
)  # fmt: skip
def test_schema(sql: str, schema: str) -> None:
    progress = {"S": ("ts",), "T": ("ts",)}
    assert str(query_schema(sql, OTHERS, progress)) == schema


@pytest.mark.parametrize(
    ("where", "band", "left"),
    [
        ("M1.ts = M2.ts", [0, 0], None),
        ("M2.ts = M1.ts + 3", [0, 3], "right.ts = left.ts + 3"),
        ("M1.ts BETWEEN M2.ts - 5 AND 2 + M2.ts", [2, 5], None),
        ("M1.ts > M2.ts - 5 AND M1.ts <= M2.ts + 2", [2, 5], "left.ts > right.ts - 5"),
        ("M2.ts >= M1.ts AND M2.ts < M1.ts + 2.5", [0, 2], "right.ts < left.ts + 2.5"),
        ("M1.ts - 1 <= M2.ts AND M2.ts - 4 <= M1.ts", [1, 4], None),
        ("M1.ts <= M2.ts + 9 AND M1.ts <= M2.ts + 4 AND M1.ts >= M2.ts", [4, 0], None),
        ("M1.ts div 10 = M2.ts div 10", [18, 18], "left.ts div 10 = right.ts div 10"),
        ("M2.ts / 10 = M1.ts / 10", [9, 9], "left.ts div 10 = right.ts div 10"),
    ],
)
def test_bands(where: str, band: list[int], left: str | None) -> None:
    (join, _) = boxes(f"SELECT M1.ts FROM M1, M2 WHERE {where}")
    assert (join["range"], join.get("on")) == (band, left)


@pytest.mark.parametrize(
    ("window", "field", "band", "residue"),
    [
        ("RANGE 2 min", "at", ["2 min", "2 min"],
         "right.at > left.at - INTERVAL 120 SECONDS AND right.at < left.at + INTERVAL 120 SECONDS"),
        ("RANGE 1500 ms", "at", ["1500 ms", "1500 ms"],
         "right.at > left.at - INTERVAL 1.500000 SECONDS AND"
         " right.at < left.at + INTERVAL 1.500000 SECONDS"),
        ("RANGE 2 days", "day", ["2 days", "2 days"],
         "right.day > left.day - 2 AND right.day < left.day + 2"),
        ("RANGE 2.5", "x", [2.5, 2.5], "right.x > left.x - 2.5D AND right.x < left.x + 2.5D"),
    ],
)  # fmt: skip
def test_windows_of_a_join_leave_out_their_ends(
    window: str, field: str, band: list[Any], residue: str
) -> None:
    arcs = {"S": Schema.parse("at timestamp, day date, x double")}
    sql = f"SELECT l.x FROM S l [{window}, WA {field}], S r [{window}, WA {field}]"
    join = compile_query("q", sql, arcs, {}).boxes["q#1"].document()
    assert (join["range"], join["on"]) == (band, residue)


def test_rows_of_an_aggregate_are_counted_before_the_predicate() -> None:
    sql = "SELECT srcIP, count(*) AS n FROM M [ROWS 10, SLIDE 5] WHERE ts > 4 GROUP BY srcIP"
    assert boxes(sql) == [
        {"box": "number", "input": "M", "as": "arrival_number"},
        {"box": "filter", "input": "q#1", "where": "ts > 4"},
        {"box": "aggregate", "input": "q#2", "order": {"on": "arrival_number", "by": ["srcIP"]},
         "window": {"size": 10, "advance": 5}, "compute": COUNT},
        {"box": "map", "input": "q#3", "compute": {"srcIP": "srcIP", "n": "agg_1"}},
    ]  # fmt: skip


def test_rows_of_a_join_are_counted_before_the_predicates() -> None:
    sql = "SELECT M1.ts FROM M1 [ROWS 3], M2 [ROWS 4] WHERE M1.ts = M2.ts and M1.flag = 'x'"
    join = boxes(sql)[0]
    assert join["inputs"] == ["M1", "M2"]
    assert (join["rows"], join["on"]) == ([3, 4], "left.ts = right.ts AND left.flag = 'x'")


def test_a_table_is_joined_without_a_window() -> None:
    scope = Scope(tables={"hosts": Schema.parse("ip bigint, name string")})
    sql = "SELECT ts, name FROM M, hosts WHERE M.srcIP = hosts.ip AND M.ts > 5"
    made = compile_query("q", sql, ARCS, PROGRESS, scope=scope)
    join = made.boxes["q#1"].document()
    assert join == {
        "inputs": ["M", "hosts"],
        "on": "left.srcIP = right.ip AND left.ts > 5",
    }
    assert str(made.schema) == "ts bigint, name string"


def test_an_aggregate_is_computed_once() -> None:
    sql = """SELECT destIP % 3 AS third, sum(ts) / count(*) - destIP % 3, count(*) AS n
             FROM M [RANGE 60] GROUP BY third HAVING count( * ) > 1 AND n < 9"""
    with pytest.raises(au.NetworkError, match="NOT_AGGREGATED"):
        boxes(sql)  # destIP stands alone in an expression that is no key
    made = boxes(sql.replace(" - destIP % 3", " + max(ts)"))
    assert made[1]["compute"] == {"agg_1": "sum(ts)", "agg_2": "count(*)", "agg_3": "max(ts)"}
    assert made[2]["where"] == "agg_2 > 1 AND (agg_2) < 9"


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("extract(day FROM s.at) + s.day", "extract(day FROM l.at) + l.day"),
        ("transform(x, y -> y + s.y)", "transform(l.x, y -> y + l.y)"),
        ("s.at + interval 1 minute", "l.at + interval 1 minute"),
        ("cast(s.day as date) = date '2024-01-01'", "cast(l.day as date) = date '2024-01-01'"),
        ("sum(S.y) FILTER (WHERE Day > 1)", "sum(l.y) FILTER (WHERE l.day > 1)"),
        ("count(DISTINCT `odd name`) /* s.y */", "count(DISTINCT l.`odd name`) /* s.y */"),
    ],
)
def test_only_fields_are_renamed(text: str, resolved: str) -> None:
    schema = Schema.parse("day int, x array<int>, at timestamp, minute int, y int, `odd name` int")
    piece = Piece(text, 0, len(text))
    found = resolve(piece, [FromSide("s", schema)], lambda _, name: f"l.{quoted(name)}")
    assert found.text == resolved


def test_a_word_in_two_roles_is_refused() -> None:
    text = "extract(day FROM at) + day"
    schema = Schema.parse("day int, at timestamp")
    with pytest.raises(au.NetworkError, match="which of these words are fields"):
        resolve(Piece(text, 0, len(text)), [FromSide("s", schema)], lambda _, name: f"l.{name}")


def test_expanded() -> None:
    net = au.Network("n")
    net.stream("M", PACKET, progress=au.Ordered("ts"))
    net.query("busy", "SELECT srcIP, count(*) AS n FROM M [RANGE 1 min] GROUP BY srcIP")
    net.output("again", "busy", qos=au.QoS(latency=[(0, 1), (1, 0)]))
    plain = expanded(net)
    assert (plain.queries, list(plain.boxes)) == ({}, ["busy#1", "busy#2"])
    assert {name: output.from_ for name, output in plain.outputs.items()} == {
        "again": "busy#2",
        "busy": "busy#2",
    }
    assert plain.outputs["again"].qos == net.outputs["again"].qos
    checked = plain.check()
    assert str(checked.arcs["busy#2"].schema) == "srcIP bigint, n bigint"
    assert str(net.check().queries["busy"]) == "srcIP bigint, n bigint"
    assert not net.boxes
    assert plain.place("boxes", "busy#2") == "query busy"


def test_progress_passes_through_boxes_to_a_query() -> None:
    net = au.Network("n")
    packets = net.stream("M", PACKET, progress=au.Ordered("ts"))
    packets.filter("ts > 5", name="some").map(keep="*", twice="ts * 2", name="more")
    net.query("n", "SELECT count(*) AS n FROM more [RANGE 1 min]")
    assert expanded(net).boxes["n#1"].order.on == "ts"  # type: ignore[attr-defined]
