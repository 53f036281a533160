"""What boxes with state make of their inputs, and what they refuse."""

# ruff: noqa: E501  (a case a line)

from __future__ import annotations

from typing import Any

import pytest

from auroral import NetworkError
from auroral.boxes import Aggregate, BSort, Dedup, Join, Latch, Number, Resample, WaitFor
from auroral.boxes.window import in_marks, require_length
from auroral.network.box import BOXES, Box, Scope
from auroral.network.function import Function
from auroral.network.types import Schema, Type

LEFT = Schema.parse("t int, at timestamp, g string, x double, l array<int>")
RIGHT = Schema.parse("T int, u date, g string, right_g int")
TABLES = Scope(
    tables={
        "prices": RIGHT,
        "more": RIGHT,
        "kept": Schema.parse("N bigint, g string, t int, u date"),
    },
    table_keys={"prices": ("T",), "kept": ("g",)},
    functions={"twice": Function(udf="functions:twice")},
    resolver=lambda _text, _schema: Type("boolean"),
)
COUNT = {"n": "count(*)"}
SLACK = {"on": "t", "slack": 1}
AGGREGATE = {"input": "s", "order": {"on": "t"}, "window": {"size": 10}, "compute": COUNT}
JOIN = {"inputs": ("a", "b"), "left": {"on": "t"}, "right": {"on": "t"}}
RESAMPLE = {**JOIN, "within": 5, "compute": COUNT}
WAIT_FOR = {"inputs": ("a", "b"), "match": "held.t = signal.T", "timeout": 5}
LATCH = {"input": "a", "by": ("g",), "compute": COUNT, "table": "kept"}
REVISE = {"late": "revise", "history": 5}


def ports(kind: type[Box], given: dict[str, Any]) -> dict[str, str]:
    box = kind(**given)
    schemas = [LEFT, RIGHT][: len(box.sources())]
    return {port: str(schema) for port, schema in box.ports(schemas, TABLES).items()}


BOTH = f"{LEFT}, right_T int, u date, right_g string, right_right_g int"


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (BSort, {"input": "s", "order": SLACK}, {"": str(LEFT)}),
        (BSort, {"input": "s", "order": {"on": "t"}}, {"": str(LEFT), "late": str(LEFT)}),
        (Dedup, {"input": "s", "keys": ("g",), "order": SLACK}, dict.fromkeys(("", "late"), str(LEFT))),
        (Number, {"input": "s", "as": "k"}, {"": f"{LEFT}, k bigint"}),
        (Aggregate, AGGREGATE, {"": "t int, n bigint", "late": str(LEFT)}),
        (Aggregate, {**AGGREGATE, "order": {"on": "T", "by": ("G",)}}, {"": "t int, g string, n bigint", "late": str(LEFT)}),
        (Aggregate, {**AGGREGATE, "order": {"on": "tup#"}}, {"": "tup bigint, n bigint", "late": str(LEFT)}),
        (Aggregate, {**AGGREGATE, **REVISE}, {"": "t int, n bigint, _revises boolean", "late": str(LEFT)}),
        (Join, {**JOIN, "within": 3}, {"": BOTH, "left_late": str(LEFT), "right_late": str(RIGHT)}),
        (Join, {**JOIN, "range": (-1, 5)}, {"": BOTH, "left_late": str(LEFT), "right_late": str(RIGHT)}),
        (Join, {**JOIN, "range": (10, -3)}, {"": BOTH, "left_late": str(LEFT), "right_late": str(RIGHT)}),
        (Join, {**JOIN, "range": (-3, 3)}, {"": BOTH, "left_late": str(LEFT), "right_late": str(RIGHT)}),
        (Join, {"inputs": ("a", "b"), "rows": (2, 3)}, {"": BOTH}),
        (Join, {**JOIN, "within": 1, "left": {"on": "tup#"}}, {"": BOTH, "right_late": str(RIGHT)}),
        (Join, {**JOIN, "within": 1, "left": {"on": "tup#"}, "right": {"on": "tup#"}}, {"": BOTH}),
        (Resample, {**RESAMPLE, "left": {"on": "tup#"}}, {"": "tup bigint, n bigint", "right_late": str(RIGHT)}),
        (BSort, {"input": "s", "order": {"on": "tup#"}}, {"": str(LEFT)}),
        (Join, {"inputs": ("a", "prices")}, {"": BOTH, "left_late": str(LEFT)}),
        (Join, {"inputs": ("prices", "a")}, {"": BOTH, "right_late": str(RIGHT)}),
        (Resample, {**RESAMPLE, "right": {"on": "t", "by": ("g",)}}, {"": "g string, t int, n bigint", "left_late": str(LEFT), "right_late": str(RIGHT)}),
        (Latch, LATCH, {"": "g string, n bigint"}),
        (Latch, {**LATCH, "by": ("G",), "compute": {"t": "max(t)", **COUNT}}, {"": "g string, t int, n bigint"}),
        (WaitFor, WAIT_FOR, dict.fromkeys(("", "late"), str(LEFT))),
        (WaitFor, {**WAIT_FOR, "match": "HELD.x > 1 OR element_at(held.l, 1) = signal.t"}, dict.fromkeys(("", "late"), str(LEFT))),
    ],
)  # fmt: skip
def test_ports(kind: type[Box], given: dict[str, Any], expected: dict[str, str]) -> None:
    assert ports(kind, given) == expected


@pytest.mark.parametrize(
    ("kind", "given", "code", "says"),
    [
        (BSort, {"input": "s", "order": {"on": "g"}}, "BAD_ORDER", "g"),
        (Dedup, {"input": "s", "keys": ("g",), "order": {"on": "tup#"}}, "BAD_ORDER", "tup#"),
        (BSort, {"input": "s", "order": {"on": "t", "slack": -1}}, "BAD_PARAMETER", "slack"),
        (BSort, {"input": "s", "order": {"on": "t", "by": ("l",)}}, "BAD_ORDER", "l"),
        (Dedup, {"input": "s", "keys": (), "order": SLACK}, "BAD_PARAMETER", "keys"),
        (Dedup, {"input": "s", "keys": ("no",), "order": SLACK}, "UNKNOWN_FIELD", "no"),
        (Dedup, {"input": "s", "keys": ("l",), "order": SLACK}, "BAD_ORDER", "keys"),
        (Number, {"input": "s", "as": "T"}, "DUPLICATE_FIELD", "T"),
        (Aggregate, {**AGGREGATE, "compute": {}}, "BAD_PARAMETER", "compute"),
        (Aggregate, {**AGGREGATE, "compute": {"n": "x"}}, "NOT_AGGREGATED", "compute.n"),
        (Aggregate, {**AGGREGATE, "window": {}}, "BAD_WINDOW", "window"),
        (Aggregate, {**AGGREGATE, "window": {"size": 0}}, "BAD_WINDOW", "size"),
        (Aggregate, {**AGGREGATE, "window": {"size": 1.5}}, "BAD_WINDOW", "size"),
        (Aggregate, {**AGGREGATE, "window": {"size": "1 h"}}, "BAD_WINDOW", "size"),
        (Aggregate, {**AGGREGATE, "window": {"size": 2**63}}, "BAD_WINDOW", "at most"),
        (
            Aggregate,
            {**AGGREGATE, "window": {"size": 1, "advance": 2**63}},
            "BAD_WINDOW",
            "at most",
        ),
        (
            Aggregate,
            {**AGGREGATE, "window": {"size": 1, "timeout": 2**63}},
            "BAD_WINDOW",
            "timeout",
        ),
        (BSort, {"input": "s", "order": {"on": "t", "slack": 2**63}}, "BAD_PARAMETER", "slack"),
        (Join, {**JOIN, "within": 2**63}, "BAD_WINDOW", "at most"),
        (Join, {**JOIN, "range": (1, 2**63)}, "BAD_WINDOW", "at most"),
        (Join, {**JOIN, "rows": (1, 2**63)}, "BAD_PARAMETER", "rows"),
        (Resample, {**RESAMPLE, "within": 2**63}, "BAD_WINDOW", "at most"),
        (Aggregate, {**AGGREGATE, "window": {"size": 1, "align": "first"}}, "BAD_WINDOW", "slack"),
        (Aggregate, {**AGGREGATE, "window": {"size": 1, "timeout": 0}}, "BAD_WINDOW", "timeout"),
        (Aggregate, {**AGGREGATE, "window": {"advance": "x + 1"}}, "TYPE_MISMATCH", "advance"),
        (Aggregate, {**AGGREGATE, "window": {"advance": 5}}, "BAD_WINDOW", "size"),
        (Aggregate, {**AGGREGATE, "late": "revise"}, "BAD_PARAMETER", "history"),
        (Aggregate, {**AGGREGATE, "history": 5}, "BAD_PARAMETER", "history"),
        (Aggregate, {**AGGREGATE, "late": "revise", "history": 0}, "BAD_WINDOW", "history"),
        (Aggregate, {**AGGREGATE, **REVISE, "order": {"on": "tup#"}}, "BAD_WINDOW", "late"),
        (Aggregate, {**AGGREGATE, **REVISE, "window": {"advance": "t > 1"}}, "BAD_WINDOW", "late"),
        (Join, JOIN, "MISSING_KEY", "within, range or rows"),
        (Join, {"inputs": ("a", "b"), "within": 1}, "MISSING_KEY", "left"),
        (Join, {**JOIN, "within": 1, "range": (1, 1)}, "BAD_PARAMETER", "within and range"),
        (Join, {**JOIN, "rows": (1, 1), "within": 1}, "BAD_PARAMETER", "within and rows"),
        (Join, {**JOIN, "rows": (0, 1)}, "BAD_PARAMETER", "rows"),
        (Join, {**JOIN, "within": -1}, "BAD_WINDOW", "within"),
        (Join, {**JOIN, "range": (-4, 3)}, "BAD_WINDOW", "the band is empty"),
        (Join, {**JOIN, "range": (3, -4)}, "BAD_WINDOW", "the band is empty"),
        (Join, {**JOIN, "range": (-1, "5 s")}, "BAD_WINDOW", "range.1"),
        (Join, {**JOIN, "range": (-(2**63), 2**60)}, "BAD_WINDOW", "at most"),
        (Join, {**JOIN, "within": 1, "right": {"on": "u"}}, "TYPE_MISMATCH", "comparable"),
        (Join, {**JOIN, "within": 1, "on": "left.t"}, "TYPE_MISMATCH", "on"),
        (Join, {"inputs": ("a", "prices"), "rows": (1, 1)}, "BAD_PARAMETER", "prices"),
        (Join, {"inputs": ("a", "prices"), "timeout": 5}, "BAD_PARAMETER", "keeps no tuples"),
        (Join, {**JOIN, "within": 1, "timeout": 0}, "BAD_WINDOW", "timeout"),
        (Resample, {**RESAMPLE, "timeout": -1}, "BAD_WINDOW", "timeout"),
        (Resample, {**RESAMPLE, "timeout": 2**63}, "BAD_WINDOW", "timeout"),
        (Join, {"inputs": ("prices", "more")}, "BAD_PARAMETER", "two tables"),
        (Resample, {**RESAMPLE, "inputs": ("a",)}, "BAD_PARAMETER", "2 inputs"),
        (Resample, {**RESAMPLE, "compute": {}}, "BAD_PARAMETER", "compute"),
        (Resample, {**RESAMPLE, "right": {"on": "u"}}, "TYPE_MISMATCH", "comparable"),
        (Resample, {**RESAMPLE, "right": {"on": "t", "by": ("t",)}}, "DUPLICATE_FIELD", "t"),
        (Latch, {**LATCH, "by": ()}, "BAD_PARAMETER", "by"),
        (Latch, {**LATCH, "by": ("l",)}, "BAD_ORDER", "by"),
        (Latch, {**LATCH, "by": ("no",)}, "UNKNOWN_FIELD", "no"),
        (Latch, {**LATCH, "compute": {}}, "BAD_PARAMETER", "compute"),
        (Latch, {**LATCH, "compute": {"n": "t + 1"}}, "NOT_AGGREGATED", "compute.n"),
        (Latch, {**LATCH, "compute": {"g": "count(*)"}}, "DUPLICATE_FIELD", "g"),
        (Latch, {**LATCH, "table": "kep"}, "UNKNOWN_TABLE", "did you mean kept?"),
        (Latch, {**LATCH, "table": "prices"}, "SCHEMA_MISMATCH", "expected [g], found [T]"),
        (Latch, {**LATCH, "table": "more"}, "SCHEMA_MISMATCH", "found []"),
        (Latch, {**LATCH, "by": ("g", "t")}, "SCHEMA_MISMATCH", "declare key: [g, t] for kept"),
        (Latch, {**LATCH, "compute": {"m": "count(*)"}}, "SCHEMA_MISMATCH", "declare m: bigint"),
        (Latch, {**LATCH, "compute": {"n": "max(t)"}}, "SCHEMA_MISMATCH", "n is int, but bigint"),
        (WaitFor, {**WAIT_FOR, "inputs": ("a", "b", "c")}, "BAD_PARAMETER", "2 inputs"),
        (WaitFor, {**WAIT_FOR, "timeout": 0}, "BAD_PARAMETER", "timeout"),
        (WaitFor, {**WAIT_FOR, "timeout": 2**63}, "BAD_PARAMETER", "too long"),
        (WaitFor, {**WAIT_FOR, "match": "held.t"}, "TYPE_MISMATCH", "match"),
        (WaitFor, {**WAIT_FOR, "match": "held.nope = signal.t"}, "UNKNOWN_FIELD", "nope"),
        (WaitFor, {**WAIT_FOR, "match": "t = signal.t"}, "UNKNOWN_FIELD", "match"),
        (WaitFor, {**WAIT_FOR, "match": "held IS NULL"}, "TYPE_MISMATCH", "held itself"),
        (WaitFor, {**WAIT_FOR, "match": "twice(held.t) = 4"}, "UNSUPPORTED_EXPRESSION", "twice"),
        (WaitFor, {**WAIT_FOR, "match": "bit_count(held.t) = 4"}, "UNSUPPORTED_EXPRESSION", "map"),
    ],
)
def test_refusals(kind: type[Box], given: dict[str, Any], code: str, says: str) -> None:
    with pytest.raises(NetworkError) as refused:
        ports(kind, given)
    assert refused.value.code == code
    assert says in str(refused.value)


@pytest.mark.parametrize("kind", [Aggregate, BSort, Dedup, Join, Latch, Number, Resample, WaitFor])
def test_boxes_are_known_by_their_kind(kind: type[Box]) -> None:
    assert BOXES[kind.kind] is kind


def test_lengths_over_decimals_have_as_much_room_as_their_values() -> None:
    on, length = Type("decimal", 38, 18), 99_999_999_999_999_999_999
    require_length("size", length, on)
    assert in_marks(length, on) == length * 10**18
    with pytest.raises(NetworkError, match="BAD_WINDOW"):
        require_length("size", 10**39, on)
