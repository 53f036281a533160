"""Blocks of grouped filters: how queries are laid out, and what their tables say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.continuous.sharing.template import Atom, Attribute, Clause, Op
from auroral.eddy.filters import domains, grouped, index
from auroral.eddy.filters.domains import Domain
from auroral.eddy.filters.grouped import QueryBlock, blocks
from auroral.eddy.filters.index import Statistics, build, match
from auroral.eddy.filters.keys import Keys, keys_of
from auroral.eddy.filters.selections import Selection, disjunctions
from auroral.eddy.vectors.evaluation import TupleColumns
from auroral.network.types import Type

A, B = (Attribute(name, Type("int"), name, (name,)) for name in "ab")


def _selection(
    clauses: tuple[Clause, ...], *columns: list[Any], kind: str = "select", first: int = 0
) -> Selection:
    count = len(columns[0])
    table = pa.table({str(n): pa.array(column) for n, column in enumerate(columns)})
    return Selection(kind, clauses, np.arange(first, first + count, dtype=np.int32), table)


def _blocks(*selections: Selection) -> tuple[QueryBlock, ...]:
    return blocks([(selection, disjunctions(selection)) for selection in selections])


def _accepted(block: QueryBlock, attribute: Attribute, values: list[Any]) -> list[list[int]]:
    """The queries whose predicates on an attribute each value satisfies."""
    (each,) = block.filters[attribute.text]
    keys = keys_of(pa.array(values, attribute.type.arrow()), each.domain.scale)
    rows = each.rows_of(each.domain.codes_of(keys))
    assert each.table is not None
    bits = np.unpackbits(each.table[rows].view(np.uint8), axis=1, bitorder="little")
    assert not bits[:, len(block.ids) :].any()
    return [block.ids[np.flatnonzero(row[: len(block.ids)])].tolist() for row in bits]


def test_a_row_for_every_region() -> None:
    clauses: tuple[Clause, ...] = ((Atom(A, ">", 0),), (Atom(A, "!=", 1),))
    (block,) = _blocks(_selection(clauses, [1, 5], [3, 3]))
    found = _accepted(block, A, [0, 1, 2, 3, 4, 5, 6, None])
    assert found == [[], [], [0], [], [0], [0], [0, 1], []]


def test_regions_that_nothing_tells_apart_share_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    clauses: tuple[Clause, ...] = ((Atom(A, ">", 0),),)
    monkeypatch.setattr(grouped, "_DIRECT", 0)
    (block,) = _blocks(_selection(clauses, list(range(0, 100, 10))))
    table = block.filters["a"][0].table
    assert table is not None
    assert len(table) == 12  # between the constants, and NULL


def test_few_codes_and_many_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    clauses: tuple[Clause, ...] = ((Atom(A, "<=", 0),),)
    selection = _selection(clauses, [5, 7, 7, 9])
    values = [4, 5, 6, 7, 8, 9, 10, -(2**31), 2**31 - 1, None]
    (direct,) = _blocks(selection)
    monkeypatch.setattr(grouped, "_DIRECT", 0)
    (mapped,) = _blocks(selection)
    monkeypatch.setattr(domains, "_MAPPED", 0)
    (searched,) = _blocks(selection)
    forms = [block.filters["a"][0] for block in (direct, mapped, searched)]
    assert [(f.starts is None, f.rows is None) for f in forms] == [
        (True, True),
        (True, False),
        (False, True),
    ]
    expected = [[i for i, c in enumerate((5, 7, 7, 9)) if v is not None and v <= c] for v in values]
    for block in (direct, mapped, searched):
        assert _accepted(block, A, values) == expected


def test_blocks_hold_one_kind_and_no_more_than_so_many() -> None:
    clauses: tuple[Clause, ...] = ((Atom(A, "=", 0),),)
    made = _blocks(
        _selection(clauses, [1] * 3000), _selection(clauses, [2] * 100, kind="other", first=5000)
    )
    assert sorted((block.kind, len(block.ids)) for block in made) == [
        ("other", 100),
        ("select", 1464),
        ("select", 1536),
    ]
    assert sorted(i for b in made if b.kind == "select" for i in b.ids) == list(range(3000))


def test_blocks_skip_attributes_nobody_asks_for() -> None:
    on_a: tuple[Clause, ...] = ((Atom(A, "=", 0),),)
    on_b: tuple[Clause, ...] = ((Atom(B, "=", 0),),)
    turns = [_selection(on_a if n % 2 else on_b, [n] * 512, first=512 * n) for n in range(8)]
    made = _blocks(*turns)
    assert sorted(tuple(block.filters) for block in made) == [("a",), ("b",)]


def test_disjunctions_over_attributes_have_planes() -> None:
    clause: Clause = (Atom(A, "=", 0), Atom(B, "=", 1))
    plain: tuple[Clause, ...] = ((Atom(A, "=", 0),),)
    (block,) = _blocks(_selection((clause,), [1], [2]), _selection(plain, [1], first=1))
    assert len(block.absent) == 1
    assert set(block.filters) == {"a", "b"}
    assert block.filters["b"][0].table is None
    assert set(block.filters["b"][0].planes) == {0}


texts = st.text(alphabet="ab\0", max_size=3)


@given(st.lists(texts, max_size=6), st.lists(st.none() | texts, max_size=6))
def test_regions_of_texts(constants: list[str], values: list[str | None]) -> None:
    ordered = Domain("bytes", keys_of(pa.array(constants, pa.string()), "bytes"), True)
    hashed = Domain("bytes", keys_of(pa.array(constants, pa.string()), "bytes"), False)
    keys = keys_of(pa.array(values, pa.string()), "bytes")
    known = sorted({c.encode() for c in constants})
    for value, region, found in zip(
        values, ordered.regions_of(keys), hashed.regions_of(keys), strict=True
    ):
        if value is None:
            assert region == found == 2 * len(known) + 1
            continue
        below = sum(c < value.encode() for c in known)
        assert region == 2 * below + (value.encode() in known)
        assert found == (region if region % 2 else 0)


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), max_size=5),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), max_size=9),
)
def test_regions_of_numbers(constants: list[int], values: list[int]) -> None:
    domain = Domain("int", keys_of(pa.array(constants, pa.int64()), "int"), True)
    known = sorted(set(constants))
    expected = [2 * sum(c < v for c in known) + (v in known) for v in values]
    keys = keys_of(pa.array(values, pa.int64()), "int")
    assert domain.regions_of(keys).tolist() == expected
    assert domain.decoded(domain.codes_of(keys)).tolist() == expected


def test_comparisons_across_types_are_exact() -> None:
    cases: list[tuple[Type, pa.Array, list[Any], Op, list[list[int]]]] = [
        (Type("int"), pa.array([2.5]), [2, 3, None], ">", [[], [0], []]),
        (Type("bigint"), pa.array(["2.5"]).cast(pa.decimal128(3, 1)), [2, 3], ">", [[], [0]]),
        (Type.parse("decimal(6,2)"), pa.array([2], pa.int32()), ["2.00", "2.01"], "=", [[0], []]),
        (Type.parse("decimal(2,2)"), pa.array([100]), [None, "0.50"], "<", [[], [0]]),
        (Type("float"), pa.array([0.1]), [0.1, 0.5], "=", [[], []]),
    ]
    for type, constants, values, op, expected in cases:
        attribute = Attribute("x", type, "x", ("x",))
        table = pa.table({"0": constants})
        selection = Selection("select", ((Atom(attribute, op, 0),),), np.zeros(1, np.int32), table)
        (block,) = _blocks(selection)
        column = pa.array(values).cast(type.arrow()).to_pylist()
        assert _accepted(block, attribute, column) == expected


def test_many_templates_over_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped, "_MANY", 128)
    draw = np.random.default_rng(5)
    names, rows = "abc", 2 * index.CHUNK + 77
    columns = {name: draw.integers(0, 30, rows) for name in names}
    attributes = [Attribute(name, Type("bigint"), name, (name,)) for name in names]
    selections, wanted = [], np.ones((rows, 300), bool)
    compare: dict[Op, Any] = {"<": np.less, ">=": np.greater_equal, "=": np.equal}
    for query in range(300):
        clauses: list[Clause] = []
        limits: list[list[int]] = []
        for name, attribute in zip(names, attributes, strict=True):
            op = draw.choice(np.array(["", *compare]))
            if op:
                clauses.append((Atom(attribute, op, len(limits)),))
                limits.append([int(draw.integers(0, 30))])
                wanted[:, query] &= compare[op](columns[name], limits[-1][0])
        selections.append(_selection(tuple(clauses), *(limits or [[0]]), first=query))
    parts = [build(selections[:250], Statistics()), build(selections[250:], Statistics())]
    assert sum(len(part.blocks) for part in parts) == 3
    tuples = TupleColumns(pa.table(columns))
    matched = match(parts, {}, tuples, [("c", "a", "b"), ("b",)])
    ids, counts = matched.lineages["select"].counts()
    assert ids.tolist() == np.flatnonzero(wanted.any(axis=0)).tolist()
    assert counts.tolist() == wanted.sum(axis=0)[ids].tolist()
    offsets, found = matched.lineages["select"].lists()
    assert np.diff(offsets).tolist() == wanted.sum(axis=1).tolist()
    assert (found == np.nonzero(wanted)[1]).all()


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("constants", [[3, 5], [-200, 7], [-128, 127], [2**40], [0, 2**31 - 1]])
def test_codes_of_integers_as_they_came(dtype: str, constants: list[int]) -> None:
    """Whatever the width of a column, its values have the codes they have as 64 bits."""
    domain = Domain("int", Keys(np.array(constants), None), ordered=True)
    bounds = np.iinfo(dtype)
    near = {c + d for c in constants for d in (-2, -1, 0, 1, 2)} | {bounds.min, bounds.max, 0}
    values = np.array(sorted(v for v in near if bounds.min <= v <= bounds.max), dtype)
    expected = domain.codes_of(Keys(values.astype(np.int64), None))
    assert domain.codes_of_integers(values).tolist() == expected.tolist()
    assert domain.codes_of_integers(values).dtype == np.intp
