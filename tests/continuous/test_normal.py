"""Predicates in normal form say what they said, of TRUE, FALSE and NULL."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.continuous.sharing.normal import MOST_CLAUSES, Leaf, conjunctive
from auroral.continuous.sharing.spelling import spelled
from auroral.network.types import Schema
from auroral.sql.expressions.compiler import compile_node
from auroral.sql.expressions.parser import parse

SCHEMA = Schema.parse("p boolean, q boolean, r boolean, x int")
ROWS = [
    dict(zip("pqrx", values, strict=True))
    for values in product((True, False, None), (True, False, None), (True, None), (1, 2, None))
]


def _leaf(leaf: Leaf, row: dict[str, Any]) -> bool:
    return compile_node(leaf.tree, SCHEMA).run(row) is (not leaf.negated)


def _truths(depth: int) -> st.SearchStrategy[str]:
    leaf = st.sampled_from(
        ["p", "q", "r", "x < 2", "x = 1", "x <=> 1", "x is null", "x in (1, null)", "p <=> true"]
    )
    if not depth:
        return leaf
    part = _truths(depth - 1)
    return st.one_of(
        leaf,
        st.builds("({} and {})".format, part, part),
        st.builds("({} or {})".format, part, part),
        st.builds("(not {})".format, part),
    )


@settings(max_examples=80, deadline=None)
@given(_truths(4))
def test_the_same_tuples_satisfy_it(text: str) -> None:
    tree = parse(text)
    run = compile_node(tree, SCHEMA).run
    clauses = conjunctive(tree, lambda *_: True)
    for row in ROWS:
        found = all(any(_leaf(leaf, row) for leaf in clause) for clause in clauses)
        assert found is (run(row) is True), (text, row)


def test_what_would_explode_stays_whole() -> None:
    text = " or ".join(f"(x = {n} and p)" for n in range(7))
    assert MOST_CLAUSES < 2**7
    assert conjunctive(parse(text)) == [(Leaf(parse(text)),)]
    assert len(conjunctive(parse(f"q and r and ({text})"))) == 3


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("X  +1> (y*2.50)", "(X + 1) > (y * 2.50BD)"),
        ("a between 1 and 2", "(a >= 1) AND (a <= 2)"),
        ("not a in(1,-2)", "NOT (a IN (1, -2))"),
        ("'it''s' || s", "concat('it\\'s', s)"),
        ("t + interval '1 day 2 hours' is not null", "NOT ((t + (INTERVAL 1 DAY 2 HOUR)) IS NULL)"),
        ("case a when 1 then 0.5f end", "CASE WHEN a = 1 THEN 0.5F END"),
        ("t > timestamp'2024-01-01'", "t > TIMESTAMP '2024-01-01 00:00:00'"),
        ("`and` > -:3", "`and` > (-(:3))"),
        ("st.a[0] :: bigint", "CAST(st.a[0] AS bigint)"),
        ("x'1F' = b", "X'1f' = b"),
    ],
)
def test_one_spelling(text: str, meant: str) -> None:
    assert spelled(parse(text)) == meant
    assert parse(meant) == parse(text)


def test_fields_of_joined_tuples() -> None:
    assert spelled(parse("`s0.a` + `s1.the b` > 1"), joined=True) == "(s0.a + s1.`the b`) > 1"
    assert spelled(parse("date_add(DAY, 1, d)")) is None
