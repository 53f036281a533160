"""Predicates in conjunctive normal form.

WHERE keeps the tuples for which it is TRUE. With NOT moved down to the leaves, an AND is TRUE if
all its parts are and an OR if one is, so NULL needs no place of its own from there on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from auroral.sql.expressions.syntax import Call, Literal, Node

MOST_CLAUSES = 64
"""An OR that would give more clauses stays one predicate."""
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True)
class Leaf:
    """A predicate without AND and OR; with `negated`, that it is FALSE."""

    tree: Node
    negated: bool = False


Alike = Callable[[Node, Node], bool]
"""Whether two values are compared as they are, so that no cast makes NULL of either."""


def conjunctive(tree: Node, alike: Alike = lambda *_: False) -> list[tuple[Leaf, ...]]:
    """Clauses of which all must hold; one leaf of each.

    >>> from auroral.sql.expressions.parser import parse
    >>> [len(clause) for clause in conjunctive(parse("a AND NOT (b < 1 AND c = 2 OR d)"))]
    [1, 2, 1]
    """
    return _clauses(tree, False, alike)


def _clauses(tree: Node, negated: bool, alike: Alike) -> list[tuple[Leaf, ...]]:
    if isinstance(tree, Call):
        if tree.name == "not":
            return _clauses(tree.args[0], not negated, alike)
        if tree.name in ("and", "or"):
            parts = [_clauses(arg, negated, alike) for arg in tree.args]
            if (tree.name == "and") != negated:
                return [clause for part in parts for clause in part]
            return _either(tree, negated, parts)
        if tree.name == "isnotnull" and len(tree.args) == 1:
            return [(Leaf(Call("isnull", tree.args), not negated),)]
        if tree.name == "<=>" and alike(*tree.args):
            return _null_safe(tree, negated)
        if negated and tree.name in _NEGATED:
            return [(Leaf(Call(_NEGATED[tree.name], tree.args)),)]
    return [(Leaf(tree, negated),)]


def _either(
    tree: Node, negated: bool, parts: list[list[tuple[Leaf, ...]]]
) -> list[tuple[Leaf, ...]]:
    """Some parts of which one must hold: every choice of a clause of each."""
    found: list[tuple[Leaf, ...]] = [()]
    for part in parts:
        if len(found) * len(part) > MOST_CLAUSES:
            return [(Leaf(tree, negated),)]
        found = [(*left, *right) for left in found for right in part]
    return found


def _null_safe(tree: Call, negated: bool) -> list[tuple[Leaf, ...]]:
    """`a <=> 3` where one side is a constant; NULL never equals it."""
    sides = [arg for arg in tree.args if isinstance(arg, Literal)]
    if len(sides) != 1:
        return [(Leaf(tree, negated),)]
    (value,) = sides
    other = tree.args[1] if tree.args[0] is value else tree.args[0]
    if value.value is None:
        return [(Leaf(Call("isnull", (other,)), negated),)]
    if not negated:
        return [(Leaf(Call("=", tree.args)),)]
    return [(Leaf(Call("<>", tree.args)), Leaf(Call("isnull", (other,))))]
