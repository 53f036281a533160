"""Access predicates find what comparing everything with everything finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from auroral.continuous.sharing.template import Atom, Attribute, Clause
from auroral.eddy.filters import selectivity
from auroral.eddy.filters.filing import filed, plan
from auroral.eddy.filters.index import Selection, Statistics, build, match
from auroral.eddy.filters.portion import BatchReader, Portion
from auroral.eddy.filters.selections import disjunctions
from auroral.eddy.vectors.evaluation import TupleColumns
from auroral.network.types import Type

ID = Attribute("id", Type("bigint"), "id", ("id",))
SYM = Attribute("sym", Type("string"), "sym", ("sym",))
V = Attribute("v", Type("double"), "v", ("v",))
ROWS, QUERIES = 400, 3000


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """File queries however many there are."""
    monkeypatch.setattr(selectivity, "ACCESS_NS", -1.0)
    monkeypatch.setattr(selectivity, "PAIR_NS", 0.0)


class World:
    """Tuples and constants at random."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self.id, self.v = draw.integers(0, 99, ROWS), draw.normal(size=ROWS)
        self.ids, self.low = draw.integers(0, 99, QUERIES), draw.normal(size=QUERIES)
        self.high = self.low + draw.random(QUERIES) - 0.1
        self.tuples = TupleColumns(
            pa.table(
                {"id": self.id, "v": self.v, "sym": [f"s{n}" for n in self.id]},
            )
        )

    def found(self, clauses: tuple[Clause, ...], *constants: Any, operators: str) -> Any:
        table = pa.table({str(n): pa.array(column) for n, column in enumerate(constants)})
        ids = np.arange(QUERIES, dtype=np.int32)
        part = build([Selection("select", clauses, ids, table)], Statistics())
        assert not part.blocks
        (access,) = part.accesses
        assert ",".join(arm.name for arm in access.arms) == operators
        offsets, found = match([part], {}, self.tuples).lineages["select"].lists()
        matrix = np.zeros((ROWS, QUERIES), bool)
        matrix[np.repeat(np.arange(ROWS), np.diff(offsets)), found] = True
        return matrix

    @property
    def same(self) -> NDArray[np.bool_]:
        return np.equal(self.id[:, None], self.ids)

    @property
    def value(self) -> NDArray[np.float64]:
        return self.v[:, None]


@pytest.fixture
def world() -> World:
    return World(1)


@pytest.mark.parametrize("op", ["<", "<=", ">", ">="])
def test_equality_and_a_bound(world: World, op: Any) -> None:
    holds = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[op]
    limits = world.v[world.ids]  # so that some are equal
    clauses: tuple[Clause, ...] = ((Atom(SYM, "=", 0),), (Atom(V, op, 1),))
    found = world.found(clauses, [f"s{n}" for n in world.ids], limits, operators="sym")
    assert (found == (world.same & holds(world.value, limits))).all()


def test_equality_and_a_range(world: World) -> None:
    clauses: tuple[Clause, ...] = ((Atom(ID, "=", 0),), (Atom(V, ">=", 1),), (Atom(V, "<=", 2),))
    found = world.found(clauses, world.ids, world.low, world.high, operators="id")
    between = (world.value >= world.low) & (world.value <= world.high)
    assert (found == (world.same & between)).all()


def test_ranges(world: World) -> None:
    clauses: tuple[Clause, ...] = ((Atom(V, ">", 0),), (Atom(V, "<=", 1),))
    found = world.found(clauses, world.low, world.high, operators="v")
    assert (found == ((world.value > world.low) & (world.value <= world.high))).all()


def test_a_bound_alone(world: World) -> None:
    found = world.found(((Atom(V, "<", 0),),), world.low, operators="v")
    assert (found == (world.value < world.low)).all()


def test_lists(world: World) -> None:
    lists = [[int(n), int(n) + 1, None, int(n)] for n in world.ids]
    found = world.found(((Atom(ID, "in", 0),),), lists, operators="id")
    assert (found == (world.same | (world.id[:, None] == world.ids + 1))).all()


def test_a_disjunction_has_an_arm_for_each_part(world: World) -> None:
    clause: Clause = (Atom(ID, "=", 0), Atom(SYM, "=", 1))
    texts = [f"s{n}" for n in world.ids // 2 * 2]
    found = world.found((clause,), world.ids, texts, operators="id,sym")
    assert (found == (world.same | (world.id[:, None] == world.ids // 2 * 2))).all()


def test_null_constants_satisfy_nothing(world: World) -> None:
    clauses: tuple[Clause, ...] = ((Atom(ID, "=", 0),), (Atom(V, ">", 1),))
    ids = [None if n % 3 == 0 else int(n) for n in world.ids]
    lows = [None if n % 5 == 0 else float(low) for n, low in zip(world.ids, world.low, strict=True)]
    found = world.found(clauses, ids, lows, operators="id")
    kept = (world.ids % 3 != 0) & (world.ids % 5 != 0)
    assert (found == (world.same & (world.value > world.low) & kept)).all()


def test_work_follows_the_matches(world: World) -> None:
    clauses: tuple[Clause, ...] = ((Atom(ID, "=", 0),), (Atom(V, ">", 1),))
    table = pa.table({"0": world.ids, "1": np.full(QUERIES, 2.0)})
    selection = Selection("select", clauses, np.arange(QUERIES, dtype=np.int32), table)
    how, _ = plan(selection, disjunctions(selection), Statistics())
    assert how is not None
    access = filed(selection, disjunctions(selection), how)
    portion = Portion(BatchReader(world.tuples), 0, ROWS)
    pairs = sum(len(rows) for rows, _ in access.arms[0].candidates(portion))
    assert pairs == int((world.same & (world.value > 2.0)).sum())
    assert not access.verifier.clauses


def test_removed_queries_are_not_found(world: World) -> None:
    table = pa.table({"0": world.ids})
    ids = np.arange(QUERIES, dtype=np.int32)
    part = build([Selection("select", ((Atom(ID, "=", 0),),), ids, table)], Statistics())
    gone = np.arange(0, QUERIES, 2, dtype=np.int32)
    found, _ = match([part], {"select": gone}, world.tuples).lineages["select"].counts()
    assert len(found)
    assert (found % 2 == 1).all()
