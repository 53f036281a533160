"""Queries over several sources: how they are joined, and how near their tuples must lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from auroral.boxes.join import require_comparable
from auroral.boxes.order import Order
from auroral.boxes.window import in_marks, require_length
from auroral.continuous.boxing.bands import LEFT, RIGHT, Bound, bounds, with_whole_division
from auroral.continuous.boxing.plan import Flow
from auroral.continuous.sharing.join_windows import (
    attributes_of,
    no_window,
    range_of,
    refuse_slide,
    row_sizes,
)
from auroral.errors import NetworkError
from auroral.network.types import FRACTIONAL, Type, quoted
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Call, Literal, Member, Name, Node
from auroral.sql.queries.from_clause import FromSource
from auroral.sql.queries.names import Resolved, resolve, substituted, unplaced
from auroral.sql.queries.text import Piece
from auroral.sql.queries.windows import length

Bands = tuple[tuple[int | float, ...], ...]
_TIMELY = ("timestamp", "timestamp_ntz")
_INFINITE = float("inf")


@dataclass(frozen=True)
class JoinCondition:
    """One conjunct of WHERE over `sn.x`, and the sources it reads."""

    piece: Piece
    tree: Node
    sides: frozenset[int]


@dataclass(frozen=True)
class Nearness:
    """How near joined tuples must lie: row windows, or bands of one attribute of each source.

    `conditions` are those of WHERE that this does not say already.
    """

    conditions: list[JoinCondition]
    rows: tuple[int, ...] = ()
    on: tuple[str, ...] = ()
    bands: Bands = ()


def nearness(
    sources: Sequence[FromSource], flows: Sequence[Flow], conditions: Sequence[JoinCondition]
) -> Nearness:
    """What windows, or else WHERE, say of how near joined tuples lie."""
    conditions = [_divided(flows, condition) for condition in conditions]
    rows = row_sizes(sources)
    if rows is not None:
        return Nearness(list(conditions), rows)
    attributes = [
        attributes_of(flow, source.window) for flow, source in zip(flows, sources, strict=True)
    ]
    if any(source.window is not None and source.window.range for source in sources):
        return _ranged(sources, flows, conditions, attributes)
    for source in sources:
        if source.window is not None:
            refuse_slide(source.window)
    found = _banded(sources, flows, conditions, attributes)
    if found is None:
        raise no_window(sources, attributes)
    return found


def _ranged(
    sources: Sequence[FromSource],
    flows: Sequence[Flow],
    conditions: list[JoinCondition],
    attributes: Sequence[Sequence[str]],
) -> Nearness:
    """Windows of RANGE: of `S [a, RANGE m], T [b, RANGE n]`, t.b > s.a − n and t.b < s.a + m."""
    on, marks, amounts = [], [], []
    for source, own, flow in zip(sources, attributes, flows, strict=True):
        extent = range_of(source, own)
        type = flow.sides[0].schema.field(own[0]).type
        amount = length(extent, type)
        if type.name in _TIMELY and not isinstance(amount, str):
            amount = f"{amount} us"
        with source.piece.located():
            require_length("range", amount, type, zero=True)
        on.append(own[0])
        amounts.append(amount)
        marks.append(in_marks(amount, type))
    types = _types(sources, flows, on)
    floats = any(type.name in FRACTIONAL for type in types)
    strict = floats or 0 in marks
    count = len(sources)
    bands = tuple(
        tuple(0 if i == j else marks[i] if strict else marks[i] - 1 for j in range(count))
        for i in range(count)
    )
    if strict:
        pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
        conditions = conditions + [
            _strict(sources[1].piece, i, on[i], marks[i], types[i], j, on[j]) for i, j in pairs
        ]
    return Nearness(conditions, (), tuple(on), bands)


def _strict(
    piece: Piece, i: int, on: str, marks: int | float, of: Type, j: int, other: str
) -> JoinCondition:
    """`sj.b < si.a + m`."""
    amount: Literal
    if of.name in _TIMELY:
        amount = Literal(int(marks), Type("interval_dt", 3, 3))
    elif of.name in FRACTIONAL:
        amount = Literal(float(marks), Type("double"))
    elif of.name == "decimal":
        text = f"{marks / 10**of.scale}BD"
        found = parse(text)
        assert isinstance(found, Literal)
        amount = replace(found, place=None)
    else:
        amount = Literal(int(marks), Type("int" if marks < 2**31 else "bigint"))
    limit = Call("+", (Name(f"s{i}.{on}"), amount))
    return JoinCondition(piece, Call("<", (Name(f"s{j}.{other}"), limit)), frozenset((i, j)))


def _banded(
    sources: Sequence[FromSource],
    flows: Sequence[Flow],
    conditions: list[JoinCondition],
    attributes: Sequence[Sequence[str]],
) -> Nearness | None:
    """Bands that WHERE puts on attributes that progress; of the first that keep all pairs near."""
    said = [(condition, list(_said(flows, condition))) for condition in conditions]
    candidates: list[list[str]] = [[] for _ in sources]
    for _, found in said:
        for i, j, bound in found:
            for side, field in ((i, bound.left), (j, bound.right)):
                if field in attributes[side] and field not in candidates[side]:
                    candidates[side].append(field)
    for on in product(*candidates):
        bands = _closed(on, [bound for _, found in said for bound in found])
        if bands is None:
            continue
        types = _types(sources, flows, on)
        rest = [condition for condition, found in said if not _is_said(condition, found, on)]
        marks = tuple(
            tuple(_marks(most, types[i], sources[i].piece) for most in row)
            for i, row in enumerate(bands)
        )
        return Nearness(rest, (), on, marks)
    return None


def _is_said(
    condition: JoinCondition, found: Sequence[tuple[int, int, Bound]], on: Sequence[str]
) -> bool:
    """Whether the bands say all that a condition says; equal fields are joined as such."""
    tree = condition.tree
    if isinstance(tree, Call) and tree.name == "=" and all(isinstance(a, Name) for a in tree.args):
        return False
    exact = (b.exact and (b.left, b.right) == (on[i], on[j]) for i, j, b in found)
    return bool(found) and all(exact)


def _said(flows: Sequence[Flow], condition: JoinCondition) -> Iterator[tuple[int, int, Bound]]:
    """What a condition says of the distance of a pair of attributes."""
    if len(condition.sides) != 2:
        return
    i, j = sorted(condition.sides)
    schemas = (flows[i].sides[0].schema, flows[j].sides[0].schema)
    paired = _sided(condition.tree, i, j)
    whole = Resolved(condition.piece, "", ())
    yield from ((i, j, bound) for bound in bounds(whole, paired, schemas))


def _closed(
    on: Sequence[str], said: Sequence[tuple[int, int, Bound]]
) -> list[list[int | float]] | None:
    """The most by which each attribute may exceed each other, None if a pair has no limit."""
    count = len(on)
    most: list[list[Any]] = [
        [0 if i == j else _INFINITE for j in range(count)] for i in range(count)
    ]
    for i, j, bound in said:
        if (bound.left, bound.right) != (on[i], on[j]):
            continue
        if bound.after is not None:
            most[i][j] = min(most[i][j], max(bound.after, 0))
        if bound.before is not None:
            most[j][i] = min(most[j][i], max(bound.before, 0))
    for k, i, j in product(range(count), repeat=3):
        most[i][j] = min(most[i][j], most[i][k] + most[k][j])
    return None if any(_INFINITE in row for row in most) else most


def _marks(most: Any, of: Type, place: Piece) -> int | float:
    with place.located():
        amount = f"{most} us" if of.name in _TIMELY else most
        require_length("range", amount, of, zero=True)
        return in_marks(amount, of)


def _types(sources: Sequence[FromSource], flows: Sequence[Flow], on: Sequence[str]) -> list[Type]:
    """The types of the attributes, which must be comparable."""
    types = []
    for source, flow, field in zip(sources, flows, on, strict=True):
        with source.piece.located():
            types.append(Order(field).type_in(flow.sides[0].schema))
    for i, j in combinations(range(len(types)), 2):
        with sources[j].piece.located():
            require_comparable(types[i], types[j])
    return types


def _divided(flows: Sequence[Flow], condition: JoinCondition) -> JoinCondition:
    """`s.a / n = t.b / n` over whole numbers as the tumbling window it is meant to be."""
    is_equality = isinstance(condition.tree, Call) and condition.tree.name == "="
    if len(condition.sides) != 2 or not is_equality:
        return condition
    i, j = sorted(condition.sides)
    schemas = (flows[i].sides[0].schema, flows[j].sides[0].schema)
    text = _text(condition, flows, i, j)
    if text is None:
        return condition
    before = Resolved(condition.piece, text, ())
    after = with_whole_division(before, schemas)
    if after is before:
        return condition
    return replace(condition, tree=_unsided(unplaced(parse(after.text)), i, j))


def _text(condition: JoinCondition, flows: Sequence[Flow], i: int, j: int) -> str | None:
    """The condition over `left.x` and `right.y`."""
    sides = {i: LEFT, j: RIGHT}
    every = [flow.sides[0] for flow in flows]
    try:
        found = resolve(
            condition.piece, every, lambda side, name: f"{sides.get(side, '')}.{quoted(name)}"
        )
    except NetworkError:
        return None
    return found.text


def _sided(tree: Node, i: int, j: int) -> Node:
    """`si.x` as `left.x`, `sj.y` as `right.y`."""

    def look(node: Node) -> Node | None:
        if isinstance(node, Name) and "." in node.name:
            side, _, field = node.name.partition(".")
            if side in (f"s{i}", f"s{j}"):
                return Member(Name(LEFT if side == f"s{i}" else RIGHT), field)
        return None

    return substituted(tree, look)


def _unsided(tree: Node, i: int, j: int) -> Node:
    def look(node: Node) -> Node | None:
        if isinstance(node, Member) and isinstance(node.base, Name):
            side = {LEFT: i, RIGHT: j}.get(node.base.name)
            return None if side is None else Name(f"s{side}.{node.name}")
        return None

    return substituted(tree, look)
