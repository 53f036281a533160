"""The reference interpreter on queries that boxes cannot answer: three streams, functions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import auroral as au
from auroral.errors import NetworkError
from auroral.reference import Reference


def streams(*names: str, progress: Any = None) -> au.Network:
    net = au.Network("queries")
    for name in names:
        net.stream(name, "k int, x int, at int", progress=progress)
    return net


def push(reference: Reference, *rows: tuple[str, int, int, int]) -> None:
    for stream, *row in rows:
        reference.push(stream, row)


def found(reference: Reference, query: str = "q") -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in reference.collected(query)]


# ── joins of three and more ──


def test_three_streams_meet_by_equal_keys_in_windows_of_rows() -> None:
    """A result comes with its last part; those of one moment in order of the others' arrival."""
    net = streams("A", "B", "C")
    net.query(
        "q",
        "SELECT A.x, B.x AS y, C.x AS z FROM A [ROWS 9], B [ROWS 2], C [ROWS 9]"
        " WHERE A.k = B.k AND B.k = C.k",
    )
    reference = Reference(net)
    push(reference, ("A", 1, 1, 0), ("B", 1, 10, 0), ("B", 1, 11, 0), ("A", 1, 2, 0))
    assert found(reference) == []
    push(reference, ("C", 1, 100, 0))
    assert found(reference) == [(1, 10, 100), (1, 11, 100), (2, 10, 100), (2, 11, 100)]
    push(reference, ("B", 2, 12, 0), ("A", 1, 3, 0))
    assert found(reference)[4:] == [(3, 11, 100)], "the window of B has 11 and 12"


def test_windows_of_rows_count_tuples_before_predicates() -> None:
    net = streams("A", "B", "C")
    net.query(
        "q",
        "SELECT C.x FROM A [ROWS 1], B [ROWS 1], C [ROWS 1]"
        " WHERE A.k = B.k AND B.k = C.k AND A.x > 0",
    )
    reference = Reference(net)
    push(reference, ("A", 1, 1, 0), ("B", 1, 1, 0), ("A", 1, 0, 0), ("C", 1, 1, 0))
    assert found(reference) == []
    push(reference, ("A", 1, 5, 0))
    assert found(reference) == [(1,)]


def test_bands_hold_between_all_and_late_tuples_count_for_nothing() -> None:
    net = streams("A", "B", "C", progress=au.Ordered("at"))
    net.query(
        "q",
        "SELECT A.x, B.x AS y, C.x AS z FROM A [RANGE 3, WA at], B [RANGE 3, WA at],"
        " C [RANGE 3, WA at] WHERE A.k = B.k AND A.k = C.k",
    )
    reference = Reference(net)
    push(reference, ("A", 1, 1, 10), ("B", 1, 2, 12), ("C", 1, 3, 13))
    assert found(reference) == [], "C comes 3 after A, and must be nearer than that"
    push(reference, ("C", 1, 4, 12))
    assert found(reference) == []
    assert reference.late == {("q#1", "late"): 1}, "C had promised nothing below 13"
    push(reference, ("A", 1, 5, 14))
    assert found(reference) == [(5, 2, 3)]
    push(reference, ("B", 7, 0, 99), ("C", 7, 0, 99), ("A", 7, 0, 99))
    assert found(reference)[1:] == [(0, 0, 0)]
    assert reference.held("q#1") == 3, "the others are out of reach"


def test_a_stream_joined_with_itself_three_times() -> None:
    net = streams("A")
    net.query(
        "q",
        "SELECT a.x, b.x AS y, c.x AS z FROM A [ROWS 5] AS a, A [ROWS 5] AS b, A [ROWS 5] AS c"
        " WHERE a.x < b.x AND b.x < c.x",
    )
    reference = Reference(net)
    push(reference, *(("A", 0, x, 0) for x in (1, 2, 3)))
    assert found(reference) == [(1, 2, 3)]


def test_a_star_of_four_needs_all() -> None:
    net = streams("A", "B", "C", "D")
    net.query(
        "q",
        "SELECT D.x FROM A [ROWS 9], B [ROWS 9], C [ROWS 9], D [ROWS 9]"
        " WHERE A.k = B.k AND A.k = C.k AND A.k = D.k AND B.x + C.x = D.x",
    )
    reference = Reference(net)
    push(reference, ("A", 1, 0, 0), ("B", 1, 2, 0), ("C", 1, 3, 0), ("D", 1, 5, 0), ("D", 1, 6, 0))
    assert found(reference) == [(5,)]


# ── Python functions ──


def root(values: pa.Array) -> pa.Array:
    if pc.any(pc.less(values, 0)).as_py():
        raise ValueError("negative")
    return pc.sqrt(pc.cast(values, pa.float64()))


def near(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.less_equal(pc.abs(pc.subtract(one, other)), 1)


@pytest.fixture
def functions() -> au.Network:
    net = streams("A", "B", "C")
    net.function("root", root, returns="double")
    net.function("near", near, returns="boolean")
    return net


def test_a_function_in_where_and_select(functions: au.Network) -> None:
    functions.query("q", "SELECT x, root(x) + 1 AS r FROM A WHERE root(x) >= 2 OR k = 7")
    reference = Reference(functions)
    push(reference, ("A", 0, 9, 0), ("A", 0, 1, 0), ("A", 0, -1, 0), ("A", 7, -4, 0))
    assert found(reference) == [(9, 4.0), (-4, None)]
    assert reference.errors == {"q": 2}, "−1 could not be decided, and −4 has no root to show"


def test_what_other_predicates_rule_out_is_no_error(functions: au.Network) -> None:
    functions.query("q", "SELECT x FROM A WHERE root(x) >= 0 AND k = 1")
    reference = Reference(functions)
    push(reference, ("A", 0, -9, 0), ("A", 1, -9, 0), ("A", 1, 9, 0))
    assert found(reference) == [(9,)]
    assert reference.errors == {"q": 1}


def test_functions_of_functions_and_of_several_streams(functions: au.Network) -> None:
    functions.query(
        "q",
        "SELECT A.x, C.x AS z FROM A [ROWS 5], B [ROWS 5], C [ROWS 5]"
        " WHERE near(A.x, B.x) AND near(B.x, C.x) AND root(root(C.x)) < 10",
    )
    reference = Reference(functions)
    push(reference, ("A", 0, 1, 0), ("B", 0, 2, 0), ("C", 0, 3, 0), ("C", 0, 4, 0))
    assert found(reference) == [(1, 3)]


def test_members_of_families_may_call_functions(functions: au.Network) -> None:
    rows = [{"rule": 1, "least": 2.0}, {"rule": 2, "least": 4.0}]
    functions.family("f", "SELECT x FROM A WHERE root(x) >= :least", rows, "rule")
    reference = Reference(functions)
    push(reference, ("A", 0, 9, 0), ("A", 0, 16, 0), ("A", 0, 1, 0))
    assert found(reference, "f[1]") == [(9,), (16,)]
    assert found(reference, "f[2]") == [(16,)]


def test_a_function_that_returns_too_much_is_an_error_of_its_query(functions: au.Network) -> None:
    functions.function("twice", lambda values: [1, 2], returns="int")
    functions.query("q", "SELECT twice(x) AS t FROM A")
    reference = Reference(functions)
    push(reference, ("A", 0, 1, 0))
    assert found(reference) == [(None,)]
    assert reference.errors == {"q": 1}


def test_what_nobody_can_answer_is_refused_as_before(functions: au.Network) -> None:
    functions.query("q", "SELECT count(*) AS n FROM A [ROWS 5] WHERE root(x) > 1")
    with pytest.raises(NetworkError, match="BAD_QUERY"):
        Reference(functions)
    net = streams("A", "B", "C")
    net.query("q", "SELECT DISTINCT A.x FROM A [ROWS 5], B [ROWS 5], C [ROWS 5] WHERE A.k = B.k")
    with pytest.raises(NetworkError, match="two streams at most"):
        Reference(net)
