"""The syntax tree of a scalar Spark SQL expression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from auroral.network.types import Type


@dataclass(frozen=True)
class Literal:
    """A constant; `type` may be void (NULL) or one of the interval types.

    `place` is where a number, a string or a dated string begins in the text it was read from.
    """

    value: Any
    type: Type
    place: int | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Name:
    """A field, or a lambda's parameter."""

    name: str


@dataclass(frozen=True)
class Member:
    """`base.name`."""

    base: Node
    name: str


@dataclass(frozen=True)
class IndexAccess:
    """`base[index]`."""

    base: Node
    index: Node


@dataclass(frozen=True)
class Clauses:
    """What only the call of an aggregate may have beside its arguments."""

    distinct: bool = False
    where: Node | None = None
    ignore_nulls: bool | None = None


@dataclass(frozen=True)
class CallPlace:
    """Where a call stands in the text: the whole, each argument, the condition of its FILTER."""

    whole: tuple[int, int]
    args: tuple[tuple[int, int], ...]
    where: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Call:
    """A function or operator by its lower-case name; `aliases` come from `struct(x AS a)`."""

    name: str
    args: tuple[Node, ...]
    aliases: tuple[str | None, ...] = ()
    clauses: Clauses | None = field(default=None, repr=False)
    place: CallPlace | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Cast:
    """`CAST(child AS to)`, or `TRY_CAST` if `attempt`."""

    child: Node
    to: Type
    attempt: bool = False


@dataclass(frozen=True)
class Case:
    """`CASE WHEN … THEN … ELSE … END`; the form with a subject is written out as equalities."""

    branches: tuple[tuple[Node, Node], ...]
    default: Node | None


@dataclass(frozen=True)
class Lambda:
    """`(x, y) -> body`."""

    parameters: tuple[str, ...]
    body: Node


Node = Literal | Name | Member | IndexAccess | Call | Cast | Case | Lambda


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below."""
    match node:
        case Member(base, _) | Cast(base, _, _) | Lambda(_, base):
            return (base,)
        case IndexAccess(base, index):
            return (base, index)
        case Call(_, args, _, clauses):
            where = clauses.where if clauses is not None else None
            return args if where is None else (*args, where)
        case Case(branches, default):
            pairs = tuple(part for branch in branches for part in branch)
            return pairs if default is None else (*pairs, default)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, outermost first."""
    yield node
    for child in children(node):
        yield from walk(child)


def free_names(node: Node, bound: frozenset[str] = frozenset()) -> Iterator[str]:
    """The names that refer to fields, not to parameters of a lambda around them."""
    if isinstance(node, Name) and node.name.lower() not in bound:
        yield node.name
    if isinstance(node, Lambda):
        bound = bound | {parameter.lower() for parameter in node.parameters}
    for child in children(node):
        yield from free_names(child, bound)
