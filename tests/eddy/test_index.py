"""The index finds what looking at every query for every tuple finds."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.continuous.sharing.template import Atom, Attribute, Clause, Op
from auroral.eddy.filters import (
    arms,
    domains,
    filtering,
    grouped,
    index,
    residue,
    selectivity,
    tally,
)
from auroral.eddy.filters.index import (
    Matched,
    Selection,
    Statistics,
    build,
    match,
    operators,
    sampled,
)
from auroral.eddy.lineage import Lineage
from auroral.eddy.routes.routing import Visit
from auroral.eddy.vectors.evaluation import TupleColumns
from auroral.network.types import Type

from .index_model import (
    CALL,
    FIELDS,
    ORDERINGS,
    RISKY,
    SUM,
    TYPES,
    VALUES,
    WITH_CONSTANT,
    expected,
)

# ── what to try ──


def _constant(op: Op, name: str) -> st.SearchStrategy[Any]:
    value = (
        st.none() | st.sampled_from(VALUES[name])
        if name != "b"
        else st.sampled_from([True, False, None])
    )
    return st.none() | st.lists(value, max_size=3) if op in ("in", "not in") else value


@st.composite
def atoms(draw: st.DrawFn, slots: list[tuple[pa.DataType, Op, str]]) -> Atom:
    choice = draw(st.sampled_from([*FIELDS, "i", "f", "s", "sum", "call", "constant"]))
    special = {"sum": SUM, "call": CALL, "constant": WITH_CONSTANT}
    attribute = special.get(choice) or FIELDS[choice]
    name = {"sum": "i", "call": "i", "constant": "b"}.get(choice, choice)
    ops: list[Op] = [*ORDERINGS, "prefix", "not prefix"] if name == "s" else ORDERINGS
    op = draw(st.sampled_from(ops))
    if op in ("null", "not null"):
        return Atom(attribute, op)
    type = Type.parse(TYPES[name]).arrow()
    slots.append((pa.list_(type) if op in ("in", "not in") else type, op, name))
    return Atom(attribute, op, len(slots) - 1)


@st.composite
def selections(draw: st.DrawFn, first: int) -> Selection:
    # Slot 0 is the constant that an attribute holds.
    slots: list[tuple[pa.DataType, Op, str]] = [(pa.int32(), "=", "i")]
    clauses = draw(st.lists(st.lists(atoms(slots), min_size=1, max_size=3), max_size=3))
    count = draw(st.integers(1, 4))
    columns = {
        str(slot): pa.array([draw(_constant(op, name)) for _ in range(count)], type)
        for slot, (type, op, name) in enumerate(slots)
    }
    kind = draw(st.sampled_from(["select", "join 1"]))
    ids = np.arange(first, first + count, dtype=np.int32)
    return Selection(kind, tuple(map(tuple, clauses)), ids, pa.table(columns))


@st.composite
def workloads(draw: st.DrawFn) -> list[Selection]:
    return [draw(selections(10 * n)) for n in range(draw(st.integers(1, 4)))]


tuples_ = st.lists(
    st.fixed_dictionaries({n: st.none() | st.sampled_from(v) for n, v in VALUES.items()}),
    max_size=12,
)


@contextmanager
def _small(choice: int) -> Iterator[None]:
    """Limits so small that every way is gone with few tuples and queries."""
    filed, chunk, tables = choice & 1, choice >> 1 & 3, choice >> 3 & 7
    with (
        patch.object(selectivity, "ACCESS_NS", -1.0 if filed else 1e9),
        patch.object(selectivity, "PAIR_NS", 0.0 if filed else 20.0),
        patch.object(index, "CHUNK", [16_384, 1, 3, 5][chunk]),
        patch.object(domains, "_TABLE", 1 << 16 if tables & 1 else -1),
        patch.object(domains, "_ROOM", 4 if tables & 2 else -1),
        patch.object(domains, "_MAPPED", 1 << 14 if tables & 2 else 0),
        patch.object(grouped, "_DIRECT", 1 << 16 if tables & 4 else 0),
        patch.object(grouped, "_MANY", 2048 if tables & 1 else 64),
        patch.object(tally, "_MANY", 2 if tables & 4 else 4096),
        patch.object(filtering, "_SPARSE", [0.5, 1.0, 0.0, 0.5][chunk]),
        patch.object(arms, "PAIRS", 1 << 20 if tables & 2 else 2),
        patch.object(residue, "PAIRS", 1 << 20 if tables & 1 else 1),
    ):
        yield


def _columns(rows: list[dict[str, Any]]) -> TupleColumns:
    arrays = {
        name: pa.array([row[name] for row in rows], Type.parse(text).arrow())
        for name, text in TYPES.items()
    }
    return TupleColumns(pa.table(arrays), {"risky": RISKY})


def _lists(lineage: Lineage) -> list[list[int]]:
    offsets, ids = lineage.lists()
    return [ids[offsets[n] : offsets[n + 1]].tolist() for n in range(lineage.rows)]


def _errors(matched: Matched) -> dict[tuple[str, int], int]:
    return {key: count for key, (count, _) in matched.errors.items()}


@settings(max_examples=120, deadline=None)
@given(
    workloads(),
    tuples_,
    st.sets(st.sampled_from([0, 1, 10, 11, 20, 30]), max_size=2),
    st.sets(st.integers(0, 11), max_size=4),
    st.integers(0, 63),
    st.randoms(use_true_random=False),
)
def test_as_by_brute_force(
    workload: list[Selection],
    rows: list[dict[str, Any]],
    removed: set[int],
    others: set[int],
    choice: int,
    random: Any,
) -> None:
    own = np.array([n not in others for n in range(len(rows))], bool)
    counted = ("join 1",) if choice & 2 else ()
    with _small(choice):
        half = len(workload) // 2
        parts = [build(some, Statistics()) for some in (workload[:half], workload[half:])]
        parts = pickle.loads(pickle.dumps(parts, 5))
        names = [operator.name for operator in operators(parts)]
        orders = [tuple(random.sample(names, len(names))) for _ in range(3)]
        gone = np.array(sorted(removed), np.int32)
        matched = match(
            parts,
            {"select": gone, "join 1": gone},
            _columns(rows),
            orders,
            own={"select": own},
            counted=counted,
        )
    lineages, errors = expected(workload, removed, rows, {"select": own})
    for kind in counted:
        ids = [query for found in lineages.pop(kind, ()) for query in found]
        counts = zip(*matched.counts.get(kind, ((), ())), strict=True)
        assert {int(query): int(count) for query, count in counts} == Counter(ids)
    assert {kind: _lists(found) for kind, found in matched.lineages.items()} == lineages
    assert _errors(matched) == errors
    for visit in matched.visits.values():
        assert 0 <= visit.returned <= visit.routed <= len(rows)


# ── particular cases ──


def _select(clauses: tuple[Clause, ...], *columns: list[Any], kind: str = "select") -> Selection:
    count = len(columns[0]) if columns else 1
    table = pa.table({str(n): pa.array(column) for n, column in enumerate(columns)})
    return Selection(kind, clauses, np.arange(count, dtype=np.int32), table)


INT, F, S = FIELDS["i"], FIELDS["f"], FIELDS["s"]


def _table(**columns: list[Any]) -> TupleColumns:
    types = {name: Type.parse(TYPES[name]).arrow() for name in columns}
    return TupleColumns(pa.table({n: pa.array(c, types[n]) for n, c in columns.items()}))


def test_a_query_without_predicates_wants_every_tuple() -> None:
    part = build([_select((), [0])], Statistics())
    matched = match([part], {}, _table(i=[1, None]))
    assert _lists(matched.lineages["select"]) == [[0], [0]]
    assert matched.visits == {}


def test_an_empty_batch() -> None:
    part = build([_select(((Atom(INT, ">", 0),),), [1])], Statistics())
    matched = match([part], {}, _table(i=[]))
    assert matched.lineages["select"].rows == 0


def test_tuples_go_where_a_live_query_looks() -> None:
    first: tuple[Clause, ...] = ((Atom(INT, ">", 0),), (Atom(F, ">", 1),))
    part = build([_select(first, [5], [0.5])], Statistics())
    tuples = _table(i=[1, 9, 9, None], f=[1.0, 1.0, 0.0, 1.0])
    matched = match([part], {}, tuples, [("i", "f")])
    assert _counts(matched.visits) == {"i": (4, 2), "f": (2, 1)}
    matched = match([part], {}, tuples, [("f",)])
    assert _counts(matched.visits) == {"f": (4, 3), "i": (3, 1)}


def _counts(visits: dict[str, Visit]) -> dict[str, tuple[int, int]]:
    return {name: (visit.routed, visit.returned) for name, visit in visits.items()}


def test_a_disjunction_is_done_with_its_first_true_part() -> None:
    clause: Clause = (Atom(INT, "=", 0), Atom(F, "=", 1))
    part = build([_select((clause,), [1], [2.0])], Statistics())
    matched = match([part], {}, _table(i=[1, 0, 1], f=[2.0, 2.0, 0.0]), [("i", "f")])
    assert _lists(matched.lineages["select"]) == [[0], [0], [0]]
    assert _counts(matched.visits)["f"] == (1, 1)


def test_expressions_are_evaluated_for_survivors_once() -> None:
    asked: list[int] = []

    class Watched(TupleColumns):
        def evaluate(self, attribute: Attribute, rows: Any = None, constants: Any = None) -> Any:
            asked.extend(rows.tolist())
            return super().evaluate(attribute, rows, constants)

    clauses: tuple[Clause, ...] = ((Atom(CALL, ">", 0),), (Atom(INT, ">", 1),))
    part = build(
        [_select(clauses, [0], [5]), _select(clauses, [1], [6], kind="other")], Statistics()
    )
    table = _table(i=[1, 7, 6, 9]).table
    matched = match([part], {}, Watched(table, {"risky": RISKY}), [("i", CALL.text)])
    assert sorted(asked) == [1, 2, 3]
    assert _lists(matched.lineages["other"]) == [[], [0], [], [0]]


def test_failures_count_for_queries_that_were_undecided() -> None:
    clauses: tuple[Clause, ...] = ((Atom(CALL, ">", 0),), (Atom(F, ">", 1),))
    part = build([_select(clauses, [0, 0], [0.5, 5.0])], Statistics())
    columns = _columns([dict.fromkeys(TYPES) | {"i": i, "f": 1.0} for i in (3, 4, 3)])
    for order in ((CALL.text, "f"), ("f", CALL.text)):
        matched = match([part], {}, columns, [order])
        assert _errors(matched) == {("select", 0): 2}
        assert "three" in matched.errors["select", 0][1]
        assert _lists(matched.lineages["select"]) == [[], [0], []]


def test_kinds_do_not_mix() -> None:
    clause: Clause = (Atom(INT, ">", 0),)
    parts = [build([_select((clause,), [1], kind=kind) for kind in ("a", "b")], Statistics())]
    matched = match(parts, {"a": np.array([0], np.int32)}, _table(i=[5]))
    assert _lists(matched.lineages["a"]) == [[]]
    assert _lists(matched.lineages["b"]) == [[0]]


def test_samples_are_spread_over_the_batch() -> None:
    part = build([_select(((Atom(INT, ">", 0),),), [1])], Statistics())
    values = sampled([part], _table(i=list(range(2000))))["i"].to_pylist()
    assert len(values) == 500
    assert values[0] == 0
    assert values[-1] == 1999


def test_operators_cheap_first() -> None:
    clauses: tuple[Clause, ...] = ((Atom(CALL, ">", 0),), (Atom(S, "=", 1),), (Atom(INT, ">", 2),))
    part = build([_select(clauses, [0, 1], ["a", "b"], [1, 2])], Statistics())
    found = operators([part, part])
    assert [(o.name, o.predicates, o.costly) for o in found] == [
        ("i", 4, False),
        ("s", 4, False),
        (CALL.text, 4, True),
    ]


@pytest.mark.parametrize("queries", [1, 3000])
def test_many_queries_of_one_template(queries: int) -> None:
    draw = np.random.default_rng(queries)
    limits, texts = draw.integers(0, 50, queries), draw.integers(0, 20, queries)
    clauses: tuple[Clause, ...] = ((Atom(S, "=", 0),), (Atom(INT, ">=", 1),))
    part = build([_select(clauses, [f"s{n}" for n in texts], limits.tolist())], Statistics())
    i, s = draw.integers(0, 60, 200), draw.integers(0, 25, 200)
    matched = match([part], {}, _table(i=i.tolist(), s=[f"s{n}" for n in s]))
    wanted = (s[:, None] == texts) & (i[:, None] >= limits)
    expected = [np.flatnonzero(row).tolist() for row in wanted]
    assert _lists(matched.lineages["select"]) == expected


def test_statistics_decide_who_is_filed() -> None:
    count = 5000
    clauses: tuple[Clause, ...] = ((Atom(INT, "=", 0),),)
    selection = _select(clauses, [7] * 10 + list(range(100, 90 + count)))
    part = build([selection], Statistics({"i": pa.array([7] * 250 + list(range(250)), pa.int32())}))
    assert [len(access.ids) for access in part.accesses] == [count - 10]
    assert sum(len(block.ids) for block in part.blocks) == 10
    matched = match([part], {}, _table(i=[7, 100, 101, 50]))
    assert _lists(matched.lineages["select"]) == [list(range(10)), [10], [11], []]
