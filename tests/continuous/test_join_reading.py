"""Queries over several sources: the same pairs as their boxes join."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.boxes import Filter, Join
from auroral.boxes.predicate import sided
from auroral.continuous.boxing.compiler import compile_query
from auroral.continuous.sharing.reading import TemplateReader
from auroral.network.types import Type
from auroral.sql.expressions.expression import evaluator

from .naive import pairs
from .texts import ARCS, JOINS, PROGRESS, read

READER = TemplateReader(ARCS, PROGRESS)


def test_joins_of_many() -> None:
    sql = """SELECT S.a FROM S, T, U
             WHERE S.ts BETWEEN T.ts - 5 AND T.ts + 5 AND U.ts >= T.ts AND T.ts >= U.ts - 10
             AND S.a = T.a AND U.a = S.a AND S.z > 3 AND T.c < U.x AND (S.a = 1 OR U.a = 2)
             AND S.z = T.c AND S.b LIKE 'x%'"""
    template = read(sql).template
    join = template.join
    assert join is not None
    assert join.arcs == ("S", "T", "U")
    assert join.equal == ((0, "a", 1, "a"), (0, "a", 2, "a"))
    assert (join.kind, join.on) == ("range", ("ts", "ts", "ts"))
    assert template.bands == ((0, 5, 15), (5, 0, 10), (5, 0, 0))
    assert [a.attribute.text for c in template.sources[0].clauses for a in c] == ["z", "b"]
    assert [[a.attribute.text for a in c] for c in template.clauses] == [
        ["s1.c < s2.x"],
        ["s0.a", "s2.a"],
        ["s0.z = s1.c"],
    ]
    assert template.clauses[1][1].attribute.field == "s2.a"


def test_windows() -> None:
    rows = read("SELECT x.a FROM S x [ROWS 5], S y [ROWS 6], U [ROWS 7] WHERE x.a = U.a").template
    assert rows.rows == (5, 6, 7)
    assert rows.join is not None
    assert (rows.join.kind, rows.join.on, rows.bands) == ("rows", (), ())
    ranges = read("SELECT S.a FROM S [RANGE 1 min, WA at], T [RANGE 2, WA at]").template
    assert ranges.bands == ((0, 59_999_999), (1, 0))
    assert ranges.clauses == ()
    floats = read("SELECT S.a FROM S [RANGE 2.5, WA z], T [RANGE 1, WA c]").template
    assert floats.bands == ((0, 2.5), (1.0, 0))
    assert [a.attribute.text for c in floats.clauses for a in c] == [
        "s1.c < (s0.z + 2.5D)",
        "s0.z < (s1.c + 1.0D)",
    ]


@lru_cache
def _as_boxes(sql: str) -> tuple[list[Any], Any]:
    """The filters before a join and the join, as the query's boxes."""
    boxes = compile_query("q", sql, ARCS, PROGRESS).boxes
    filters = {name: box for name, box in boxes.items() if isinstance(box, Filter)}
    (join,) = (box for box in boxes.values() if isinstance(box, Join))
    return [filters.get(name) for name in join.inputs], join


def _paired(sql: str, left: dict[str, Any], right: dict[str, Any]) -> bool:
    filters, join = _as_boxes(sql)
    for row, box, arc in zip((left, right), filters, ("S", "T"), strict=True):
        if box is not None and evaluator(box.where, ARCS[arc])(row) is not True:
            return False
    before, after = join.lengths(Type("bigint"))
    if not left[join.left.on] - before <= right[join.right.on] <= left[join.left.on] + after:
        return False
    on = join.on or "true"
    both = sided(left=ARCS["S"], right=ARCS["T"])
    return evaluator(on, both)({"left": left, "right": right}) is True


_small = st.integers(-4, 12)
_floats = st.sampled_from([None, 0.5, 1.5, 2.5, math.nan])


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(JOINS),
    st.booleans(),
    st.tuples(_small, _small, st.integers(0, 3), st.integers(0, 3), _floats, _floats),
)
def test_the_same_pairs_are_joined(text: str, windows: bool, values: tuple[Any, ...]) -> None:
    names = "S [RANGE 3, WA ts], T [RANGE 2, WA ts]" if windows else "S, T"
    sql = f"SELECT S.a FROM {names} WHERE {text}"
    left = {"ts": values[0], "a": values[2], "b": "x", "at": None, "z": values[4]}
    right = {"ts": values[1], "a": values[3], "c": values[5], "at": None}
    found = READER.read(sql)
    mine = pairs(found.template, found.constants, (left, right), (ARCS["S"], ARCS["T"]))
    assert mine is _paired(sql, left, right)
