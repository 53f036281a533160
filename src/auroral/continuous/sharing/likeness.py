"""Queries that differ in their literals alone: the same template, other constants.

The text with a mark in place of each number and string is its skeleton. Of texts with one
skeleton, literals of the same types and the same values wherever a literal decides more than a
constant, the first is taken apart and the others are read off it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from auroral.continuous.analysis import Analysis
from auroral.continuous.sharing.predicates import OtherShape, Slot, literal_places
from auroral.continuous.sharing.template import Template
from auroral.network.types import Schema, Type
from auroral.sql.expressions.compiler import compile_node
from auroral.sql.expressions.lexer import unquote
from auroral.sql.expressions.literals import number, typed_literal
from auroral.sql.expressions.syntax import Literal, Node
from auroral.sql.queries.names import substituted

# A number beside a dot or a word stays in the skeleton: it decides then, which is never wrong.
_LITERAL = re.compile(
    r"""
    (?P<string>(?<!\w)[rR]'[^']*'|(?<!\w)[rR]"[^"]*"
             |'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<number>(?<![\w.])(?:[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[dDfF])?
             |[0-9]+[lLsSyY])(?![\w.]))
  | `(?:[^`]|``)*` | --[^\n]* | /\*.*?\*/
    """,
    re.VERBOSE | re.DOTALL,
)
_STRING = Type("string")
_LAST_WORD = re.compile(r"\w+\Z")


class Written(NamedTuple):
    """A literal of a text: where it begins, the token, and what it is without a sign."""

    start: int
    text: str
    literal: Literal


class Skeleton(NamedTuple):
    """A text without its literals; `key` is the same for texts that are read alike."""

    key: str
    sql: str
    written: list[Written]


def skeleton(sql: str) -> Skeleton | None:
    """The skeleton of a text, None if it cannot be told.

    >>> skeleton("SELECT a1 FROM s WHERE a1 > 5 AND b = 'x'").key.replace(chr(0), "|")
    'SELECT a1 FROM s WHERE a1 > |int| AND b = |string|'
    """
    if chr(0) in sql:
        return None
    parts: list[str] = []
    written: list[Written] = []
    at = 0
    for match in _LITERAL.finditer(sql):
        kind = match.lastgroup
        if kind is None:
            continue
        start, text = match.start(), match.group()
        try:
            literal, mark = _number(text) if kind == "number" else _string(text)
        except (ValueError, OverflowError):
            return None
        parts += (sql[at:start], mark)
        written.append(Written(start, text, literal))
        at = match.end()
    parts.append(sql[at:])
    return Skeleton("".join(parts), sql, written)


@lru_cache(maxsize=65536)
def _number(text: str) -> tuple[Literal, str]:
    literal = number(text)
    return literal, f"\0{literal.type}\0"


def _string(text: str) -> tuple[Literal, str]:
    return Literal(unquote(text), _STRING), "\0string\0"


@dataclass(frozen=True)
class _Placed:
    """Which of a text's literals one of a tree is, with its sign or the word before it."""

    at: int
    before: str
    type: Type

    def value(self, shape: Skeleton) -> Any:
        """What it is in another text of the skeleton."""
        if not self.before:
            return shape.written[self.at].literal.value
        found = self.literal(shape)
        if found.type != self.type:
            raise OtherShape
        return found.value

    def literal(self, shape: Skeleton) -> Literal:
        written = shape.written[self.at]
        if not self.before:
            return written.literal
        if self.before == "-":
            return _number("-" + written.text)[0]
        return typed_literal(self.before, unquote(written.text))


Make = Callable[[Skeleton], Any]


@dataclass(frozen=True)
class Like:
    """A template, and how its constants are read off a text."""

    template: Template
    makes: tuple[Make, ...]

    def constants(self, shape: Skeleton) -> tuple[Any, ...]:
        return tuple(make(shape) for make in self.makes)


@dataclass
class Likeness:
    """The templates of a skeleton, by the values of the literals that decide more."""

    frozen: tuple[int, ...] = ()
    found: dict[tuple[Any, ...], Like] = field(default_factory=dict)

    def like(self, shape: Skeleton) -> Like | None:
        return self.found.get(self._values(shape))

    def learn(self, shape: Skeleton, analysis: Analysis) -> None:
        """Remember how a text was read."""
        places = _places(shape)
        used = {
            places[place].at
            for slot in analysis.slots
            for place in literal_places(*slot.trees)
            if place in places
        }
        used -= {places[place].at for place in analysis.frozen if place in places}
        frozen = tuple(at for at in range(len(shape.written)) if at not in used)
        if self.found and frozen != self.frozen:
            # Which literals decide depends on their values: let all of them decide.
            frozen = tuple(range(len(shape.written)))
            self.found.clear()
        self.frozen = frozen
        makes = tuple(_make(slot, places) for slot in analysis.slots)
        self.found[self._values(shape)] = Like(analysis.template, makes)

    def _values(self, shape: Skeleton) -> tuple[Any, ...]:
        return tuple(shape.written[at].text for at in self.frozen)


def _places(shape: Skeleton) -> dict[int, _Placed]:
    """The literals by the places where the parser says that they begin."""
    found: dict[int, _Placed] = {}
    end = 0
    for at, written in enumerate(shape.written):
        found[written.start] = _Placed(at, "", written.literal.type)
        before = shape.sql[end : written.start].rstrip()
        if before.endswith("-"):
            found[end + len(before) - 1] = _Placed(at, "-", Type("void"))
        word = _LAST_WORD.search(before)
        if word:
            found.setdefault(end + word.start(), _Placed(at, word.group().lower(), Type("void")))
        end = written.start + len(written.text)
    return found


def _make(slot: Slot, places: dict[int, _Placed]) -> Make:
    """How a slot's constant is read off a text."""
    finish = slot.finish
    if not slot.trees:
        return lambda _: finish(())
    reads = [_read(tree, places) for tree in slot.trees]
    if len(reads) == 1:
        read = reads[0]
        return lambda shape: finish((read(shape),))
    return lambda shape: finish([read(shape) for read in reads])


def _read(tree: Node, places: dict[int, _Placed]) -> Make:
    if isinstance(tree, Literal):
        placed = places.get(tree.place) if tree.place is not None else None
        if placed is None:
            return lambda _: tree.value
        return _Placed(placed.at, placed.before, tree.type).value
    type = compile_node(tree, Schema(())).type

    def read(shape: Skeleton) -> Any:
        def look(node: Node) -> Node | None:
            if isinstance(node, Literal) and node.place in places:
                return places[node.place].literal(shape)
            return None

        typed = compile_node(substituted(tree, look), Schema(()))
        if typed.type != type:
            raise OtherShape
        return typed.value()

    return read
