"""Computed fields over pairs: `right.x` is a plain field, `left.x` is constant in a window."""

from __future__ import annotations

from collections.abc import Mapping

from auroral.errors import NetworkError
from auroral.network.function import Function
from auroral.network.types import Field, Schema, Type
from auroral.sql.expressions.lexer import Token, tokens
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Member, Name, Node, walk

LEFT = "left"
_RIGHT = "right"


def without_right(
    compute: Mapping[str, str | Function], right: Schema
) -> dict[str, str | Function]:
    """The same with `x` for `right.x`.

    >>> without_right({"n": "sum(right.v) + left.v"}, Schema.parse("v int"))
    {'n': 'sum(v) + left.v'}
    """
    if _RIGHT in right:
        return dict(compute)  # it is a field, and right.x a part of it
    return {n: how if isinstance(how, Function) else _plain(how) for n, how in compute.items()}


def left_field(left: Schema, right: Schema) -> Field | None:
    """The left tuple as a field; None if the right has a field of this name."""
    return None if LEFT in right else Field(LEFT, Type("struct", children=left.fields))


def left_reads(compute: Mapping[str, str | Function], left: Schema, right: Schema) -> list[str]:
    """The fields of the left that functions read, in the order of the schema."""
    if LEFT in right:
        return []
    found: set[str] = set()
    for how in compute.values():
        if not isinstance(how, Function):
            found |= set(left_names(how, left))
    return [name for name in left.names if name in found]


def left_names(text: str, left: Schema) -> list[str]:
    """The fields of the left that an expression names."""
    nodes = list(walk(parse(text)))
    members = [node for node in nodes if isinstance(node, Member) and _is_left(node.base)]
    if len(members) < sum(map(_is_left, nodes)):
        raise NetworkError(
            "TYPE_MISMATCH",
            f"expected a field of the left tuple, found left itself in {text!r}",
            hint=f"write left.{left.names[0]}",
        )
    return list(dict.fromkeys(left.field(node.name).name for node in members))


def _is_left(node: Node) -> bool:
    return isinstance(node, Name) and node.name.lower() == LEFT


def _plain(text: str) -> str:
    found = tokens(text)
    for at in range(len(found) - 3, -1, -1):
        side, dot = found[at], found[at + 1]
        member = at > 0 and found[at - 1].text == "."
        if _is_right(side) and dot.text == "." and not member:
            text = text[: side.start] + text[dot.end :]
    return text


def _is_right(token: Token) -> bool:
    return token.kind == "word" and token.text == _RIGHT
