"""Values as marks: the same for one value and a column, in the same order, and back again."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.network.types import Type
from auroral.progress.values import column_marks, from_mark, to_mark

TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999))
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "tinyint": st.integers(-128, 127),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False),
    "float": st.floats(allow_nan=False, width=32),
    "decimal(10,2)": st.decimals(-(10**8) + 1, 10**8 - 1, places=2),
    "decimal(38,18)": st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -18))
    ),
    "date": st.dates(),
    "timestamp": TIMES.map(lambda t: t.replace(tzinfo=UTC)),
    "timestamp_ntz": TIMES,
}


def same_kind(count: int) -> st.SearchStrategy[tuple[str, list[Any]]]:
    return st.sampled_from(sorted(KINDS)).flatmap(
        lambda kind: st.tuples(st.just(kind), st.lists(KINDS[kind], min_size=1, max_size=count))
    )


def marks(kind: str, values: list[Any]) -> tuple[list[Any], list[bool]]:
    column = pa.chunked_array([pa.array(values, Type.parse(kind).arrow())])
    found, known = column_marks(column)
    return found.tolist(), known.tolist()


@given(same_kind(6))
def test_a_column_has_the_marks_of_its_values(drawn: tuple[str, list[Any]]) -> None:
    kind, values = drawn
    found, known = marks(kind, values)
    assert found == [to_mark(value, Type.parse(kind).scale) for value in values]
    assert all(known)


@given(same_kind(6))
def test_marks_compare_as_the_values_do(drawn: tuple[str, list[Any]]) -> None:
    kind, values = drawn
    found, _ = marks(kind, values)
    for a, x in zip(values, found, strict=True):
        for b, y in zip(values, found, strict=True):
            assert (a < b) == (x < y)
            assert (a == b) == (x == y)


@given(same_kind(1))
def test_a_mark_is_shown_as_its_value(drawn: tuple[str, list[Any]]) -> None:
    kind, (value,) = drawn
    type = Type.parse(kind)
    shown = from_mark(to_mark(value, type.scale), type.name, type.scale)
    if isinstance(value, date):
        assert (
            shown
            == (value.replace(tzinfo=None) if isinstance(value, datetime) else value).isoformat()
        )
    elif isinstance(value, Decimal):
        assert Decimal(shown) == value
    else:
        assert shown == value


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_null_has_no_mark(kind: str) -> None:
    assert marks(kind, [None])[1] == [False]


def test_nan_has_no_mark_and_infinity_has() -> None:
    found, known = marks("double", [1.5, math.nan, None, math.inf])
    assert known == [True, False, False, True]
    assert (found[0], found[3]) == (1.5, math.inf)
