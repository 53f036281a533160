"""Bands in a join's WHERE: how far `right.b` may lie below and above `left.a`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from auroral.network.types import Schema, Type, quoted
from auroral.sql.expressions.syntax import Call, Literal, Member, Name, Node, children
from auroral.sql.queries.names import Resolved

LEFT, RIGHT = "left", "right"
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True)
class Bound:
    """`right.b - left.a` is at least −`before` or at most `after`, in the attribute's units.

    `exact` if it says all that the predicate says, so that a band makes it superfluous.
    """

    left: str
    right: str
    before: Any = None
    after: Any = None
    exact: bool = True


@dataclass(frozen=True)
class JoinBand:
    """The window of a join: left.on − before <= right.on <= left.on + after."""

    left: str
    right: str
    before: Any
    after: Any


def find_band(
    conditions: Sequence[Resolved],
    schemas: tuple[Schema, Schema],
    progress: tuple[Sequence[str], Sequence[str]],
) -> tuple[JoinBand, list[Resolved]] | None:
    """The band that the conditions put on attributes that progress, and what remains of them."""
    said = [(c, list(bounds(c, c.tree, schemas))) for c in conditions]
    pairs = dict.fromkeys((b.left, b.right) for _, found in said for b in found)
    for left, right in pairs:
        if left not in progress[0] or right not in progress[1]:
            continue
        own = [b for _, found in said for b in found if (b.left, b.right) == (left, right)]
        before = [b.before for b in own if b.before is not None]
        after = [b.after for b in own if b.after is not None]
        if not before or not after:
            continue
        rest = [
            c
            for c, found in said
            if not found or not all(b.exact and (b.left, b.right) == (left, right) for b in found)
        ]
        return JoinBand(left, right, max(min(before), 0), max(min(after), 0)), rest
    return None


def with_whole_division(condition: Resolved, schemas: tuple[Schema, Schema]) -> Resolved:
    """`left.a / n = right.b / n` over whole numbers as the tumbling window it is meant to be.

    The papers divide as C does, Spark's `/` gives fractions.
    """
    sides = _divided(condition.tree, schemas, "/")
    if sides is None:
        return condition
    left, right, by = sides
    text = f"left.{quoted(left)} div {by} = right.{quoted(right)} div {by}"
    return Resolved(condition.piece, text, condition.references)


def bounds(whole: Resolved, tree: Node, schemas: tuple[Schema, Schema]) -> Iterator[Bound]:
    """What a predicate says of the distance of a pair; nothing if any part of it says else."""
    if isinstance(tree, Call) and tree.name == "and":
        found = [list(bounds(whole, part, schemas)) for part in tree.args]
        yield from (bound for part in found for bound in part) if all(found) else ()
        return
    divided = _divided(tree, schemas, "div")
    if divided is not None:
        left, right, by = divided
        # Of numbers below 0, DIV gives 0 on both sides of it: twice the width.
        reach = by - 1 if _tumbling(whole.piece.tree) else 2 * (by - 1)
        yield Bound(left, right, reach, reach, exact=False)
        return
    if not isinstance(tree, Call) or tree.name not in _FLIPPED or len(tree.args) != 2:
        return
    one, other = (_shifted(part) for part in tree.args)
    if one is None or other is None or {one[0], other[0]} != {LEFT, RIGHT}:
        return
    sign = tree.name
    if one[0] == LEFT:  # turn it so that right stands first
        one, other, sign = other, one, _FLIPPED[sign]
    to, origin = schemas[1].field(one[1]), schemas[0].field(other[1])
    more, less = _units(other[2], origin.type), _units(one[2], origin.type)
    if to.type.name == origin.type.name and more is not None and less is not None:
        yield _bound(origin.name, to.name, sign, more - less, origin.type)


def _bound(left: str, right: str, sign: str, distance: Any, of: Type) -> Bound:
    """`right - left <sign> distance`."""
    whole = of.is_integral or of.name in ("date", "timestamp", "timestamp_ntz")
    before = math.floor(-distance) if whole else _plain(-distance)
    after = math.floor(distance) if whole else _plain(distance)
    if sign == "=":
        exact = before >= 0 and after >= 0 and (not whole or distance == after)
        return Bound(left, right, before, after, exact)
    if sign in (">", ">="):
        return Bound(left, right, before=before, exact=sign == ">=" and before >= 0)
    return Bound(left, right, after=after, exact=sign == "<=" and after >= 0)


def _divided(tree: Node, schemas: tuple[Schema, Schema], by: str) -> tuple[str, str, int] | None:
    """The fields and n of `left.a by n = right.b by n` over whole numbers."""
    if not isinstance(tree, Call) or tree.name != "=" or len(tree.args) != 2:
        return None
    found: dict[str, tuple[str, int]] = {}
    for part in tree.args:
        if not isinstance(part, Call) or part.name != by or len(part.args) != 2:
            return None
        column, number = _column(part.args[0]), part.args[1]
        if column is None or not isinstance(number, Literal) or not number.type.is_integral:
            return None
        found[column[0]] = (column[1], number.value)
    if set(found) != {LEFT, RIGHT}:
        return None
    (left, n), (right, m) = found[LEFT], found[RIGHT]
    fields = schemas[0].field(left), schemas[1].field(right)
    if n != m or n < 1 or not all(field.type.is_integral for field in fields):
        return None
    return fields[0].name, fields[1].name, n


def _tumbling(tree: Node) -> bool:
    """Whether a predicate was written with `/`."""
    return any(isinstance(part, Call) and part.name == "/" for part in children(tree))


def _shifted(node: Node) -> tuple[str, str, Literal | None] | None:
    """Side, field and what is added, of `left.a`, `left.a + n` or `left.a - n`."""
    column = _column(node)
    if column is not None:
        return (*column, None)
    if not isinstance(node, Call) or node.name not in ("+", "-") or len(node.args) != 2:
        return None
    one, other = node.args
    if node.name == "+" and isinstance(one, Literal):
        one, other = other, one
    column = _column(one)
    if column is None or not isinstance(other, Literal) or other.value is None:
        return None
    if not isinstance(other.value, int | float | Decimal) or isinstance(other.value, bool):
        return None
    added = other if node.name == "+" else Literal(-other.value, other.type)
    return (*column, added)


def _column(node: Node) -> tuple[str, str] | None:
    if isinstance(node, Member) and isinstance(node.base, Name):
        return (node.base.name, node.name) if node.base.name in (LEFT, RIGHT) else None
    return None


def _units(added: Literal | None, of: Type) -> Any | None:
    """What is added in the units of marks; None if it has no fixed length there."""
    if added is None:
        return 0
    if of.name in ("timestamp", "timestamp_ntz"):
        return added.value if added.type.name == "interval_dt" else None
    if of.name == "date":
        return added.value if added.type.is_integral else None
    return added.value if added.type.is_numeric else None


def _plain(value: Any) -> int | float:
    return int(value) if value == int(value) else float(value)
