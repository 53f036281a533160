"""Conditions of breakpoints and samples: what they mean, and what they may cost."""

from __future__ import annotations

import re
import time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.engine.debug.conditions import Condition
from auroral.errors import AuroralError
from auroral.network.types import Schema
from auroral.sql.expressions.linear_regex import is_plain, linear_search
from auroral.sql.expressions.patterns import java_regex, like_pattern

SCHEMA = Schema.parse("s string, n int")
ROWS = pa.table({"s": ["aaaa!", "b", "Kelvin", None], "n": pa.array([1, 2, 3, 4], pa.int32())})
MOST_S = 5.0
"""What is linear takes milliseconds; what is not would take longer than anybody lives."""


def holds(text: str, table: pa.Table = ROWS) -> list[bool]:
    found: list[bool] = Condition(text, SCHEMA).holds(table).tolist()
    return found


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("s rlike '(a+)+!$'", [0]),
        ("s rlike '^[A-Z].*n$'", [2]),
        ("s rlike '(?i)^k.*N$'", [2]),
        ("s rlike '\\\\bb'", [1]),
        ("s LIKE '%a%a_%'", [0]),
        ("length(rpad(s, 1000, 'y')) = 1000", [0, 1, 2]),
        ("repeat(s, n) = 'bb'", [1]),
        ("split(s, 'a')[4] = '!'", [0]),
        ("regexp_extract(s, '(e)(l)', 2) = 'l'", [2]),
        ("regexp_replace(s, 'a', 'xy') = 'xyxyxyxy!'", [0]),
        ("concat_ws('-', s, n) = 'b-2'", [1]),
        ("trim('!', s) = 'aaaa'", [0]),
        ("length(concat(s, space(n * 500000000))) > 0", []),
        ("length(repeat(repeat(repeat(s, n * 1000), 1000), 1000)) > 0", []),
        ("n = 2 OR length(rpad(s, n * 1000000000, 'y')) > 0", [1]),
    ],
)
def test_what_a_condition_means(text: str, rows: list[int]) -> None:
    assert [at for at, held in enumerate(holds(text)) if held] == rows


@pytest.mark.parametrize(
    "text",
    [
        "length(rpad('x', 1000000000, 'y')) > 1",
        "length(lpad(s, 1000000000)) > 1",
        "length(repeat(s, 1000000000)) > 1",
        "length(space(1000000000)) > 1",
        "s rlike '(a)\\\\1+'",
        "s rlike 'a(?=b+)'",
        "split(s, '(a+)+b')[0] = ''",
        "regexp_extract(s, '(a|b)+', 1) = ''",
        "regexp_replace(s, 'a*b', '') = ''",
        "s rlike repeat('(a+)+', n)",
        "s rlike repeat('a', 1000000000)",
    ],
)
def test_what_may_take_too_much_is_refused(text: str) -> None:
    with pytest.raises(AuroralError) as refused:
        Condition(text, SCHEMA)
    assert refused.value.code in ("BAD_CONDITION", "UNKNOWN_FUNCTION")


@pytest.mark.parametrize(
    "text",
    [
        "s rlike '(a+)+$'",
        "s rlike '(a|a)*b'",
        "s rlike 'a*a*a*a*a*a*b'",
        "s LIKE '" + "%a" * 30 + "b'",
        "length(" + "replace(" * 20 + "s" + ", 'a', 'aaaaaaaaaa')" * 20 + ") > 0",
        "length(" + "hex(" * 40 + "s" + ")" * 40 + ") > 0",
        "instr(" + "rpad('a', 1000000, 'a')" + ", concat(s, 'b')) > 0",
        "rpad('a', 500000, 'a') LIKE concat('%', rpad('a', 200000, 'a'), 'b%')",
    ],
)
def test_no_condition_keeps_the_engine_busy(text: str) -> None:
    table = pa.table({"s": ["a" * 3000 + "!"], "n": pa.array([1], pa.int32())})
    since = time.monotonic()
    assert holds(text, table) == [False]
    assert time.monotonic() - since < MOST_S


PIECES = [
    "a",
    "b",
    "[ab]",
    "[^a]",
    ".",
    "a*",
    "b+?",
    "(a|bb)",
    "(?:ab)?",
    "a{1,2}",
    "$",
    "^",
    "\\s",
]


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5), st.text("ab \n\r\x85é", max_size=8)
)
def test_regular_expressions_in_linear_time_find_the_same(pieces: list[str], text: str) -> None:
    pattern = "".join(pieces)
    if "\r" not in text:  # at the end of a line that ends in two characters, $ is not exact
        assert linear_search(pattern)(text) == (java_regex(pattern).search(text) is not None)


def test_plain_patterns_neither_repeat_nor_choose() -> None:
    plain = ["^a[b*]c$", r"a\+b", "(?i)abc", "(ab)(c)", r"\Qa+\E", "(?<name>a)"]
    assert all(map(is_plain, plain))
    assert not any(map(is_plain, ["a+", "a?", "a{2}", "a|b", "(?:a)*"]))


@given(st.text("ab%_", max_size=6), st.text("ab\n", max_size=8))
def test_like_finds_what_the_plain_translation_finds(pattern: str, text: str) -> None:
    plain = "".join({"%": ".*", "_": "."}.get(char, char) for char in pattern)
    expected = re.fullmatch(plain, text, re.DOTALL) is not None
    assert (like_pattern(pattern).fullmatch(text) is not None) == expected
