"""Texts of expressions taken apart and put together again; each result is checked by its tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from auroral.errors import AuroralError
from auroral.sql.expressions.lexer import Token, tokens
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import (
    Call,
    Case,
    Cast,
    IndexAccess,
    Lambda,
    Member,
    Name,
    Node,
    walk,
)


def conjuncts(text: str) -> list[str]:
    """The parts of a predicate that AND connects; one if it has no other.

    >>> conjuncts("a > 1 AND b BETWEEN 2 AND 3 AND (c OR d)")
    ['a > 1', 'b BETWEEN 2 AND 3', '(c OR d)']
    """
    tree = parse(text)
    if not isinstance(tree, Call) or tree.name != "and":
        return [text]
    found = tokens(text)
    cuts = [0, *(token.start for token in found if token.text == "and"), len(text)]
    parts: list[str] = []
    at = 0
    for wanted in tree.args:
        for end in range(at + 1, len(cuts)):
            begin = cuts[at] + (3 if at else 0)
            part = text[begin : cuts[end]].strip()
            if _parsed(part) == wanted:
                parts.append(part)
                at = end
                break
        else:
            return [text]
    return parts if at == len(cuts) - 1 else [text]


def substituted(text: str, by: Mapping[str, str]) -> str | None:
    """The expression with other expressions in place of fields, which are named in lower case.

    None if it cannot be written that way.

    >>> substituted("Pos + 1 > x.pos", {"pos": "a * 2"})
    '(a * 2) + 1 > x.pos'
    >>> substituted("transform(xs, pos -> pos + 1)", {"pos": "a"}) is None
    True
    """
    tree = parse(text)
    if any(isinstance(node, Lambda) for node in walk(tree)):
        return None  # a parameter may have the name of a field
    wanted = _replaced(tree, {name: parse(other) for name, other in by.items()})
    found = tokens(text)
    made, done = "", 0
    for at, token in enumerate(found):
        name = _name(found, at)
        if name is not None and name in by:
            made += text[done : token.start] + _enclosed(by[name])
            done = token.end
    made += text[done:]
    return made if _parsed(made) == wanted else None


def _enclosed(text: str) -> str:
    """An expression as an operand; a comment may end it."""
    alone = len(tokens(text)) == 2
    return text if alone else f"({text}\n)" if "--" in text else f"({text})"


def _name(found: Sequence[Token], at: int) -> str | None:
    """The field that a token may name, in lower case."""
    token = found[at]
    behind_dot = at > 0 and found[at - 1].text == "."
    if behind_dot or (found[at + 1 : at + 2] and found[at + 1].text == "("):
        return None
    if token.kind == "quoted":
        return token.text[1:-1].replace("``", "`").lower()
    return token.text if token.kind == "word" else None


def _parsed(text: str) -> Node | None:
    try:
        return parse(text)
    except AuroralError:
        return None


def _replaced(node: Node, by: Mapping[str, Node]) -> Node:
    match node:
        case Name(name):
            return by.get(name.lower(), node)
        case Member(base, name):
            return Member(_replaced(base, by), name)
        case IndexAccess(base, index):
            return IndexAccess(_replaced(base, by), _replaced(index, by))
        case Call(_, args):
            return replace(node, args=tuple(_replaced(arg, by) for arg in args))
        case Cast(child):
            return replace(node, child=_replaced(child, by))
        case Case(branches, default):
            pairs = tuple((_replaced(a, by), _replaced(b, by)) for a, b in branches)
            return Case(pairs, None if default is None else _replaced(default, by))
    return node
