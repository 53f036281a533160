"""Names in a query's expressions: which stream's field each is, and the text a box reads.

The text stays as written but for the names. A changed text is read again and must be the tree
that was meant, so that a word in another role (a unit, a type) is never taken for a field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from auroral.errors import NetworkError, closest, list_existing
from auroral.network.types import Schema
from auroral.sql.expressions.lexer import Token, tokens
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import (
    Call,
    Clauses,
    Lambda,
    Literal,
    Member,
    Name,
    Node,
    children,
    free_names,
    walk,
)
from auroral.sql.queries.refusals import AGGREGATES
from auroral.sql.queries.text import Piece

Target = Callable[[int, str], str]
"""From a side and a field of it to the text that stands for it."""


@dataclass(frozen=True)
class FromSide:
    """One stream of FROM: what the query calls it, and its fields."""

    name: str | None
    schema: Schema


@dataclass(frozen=True)
class FieldReference:
    """A field that an expression names, from `start` to `end` of its text."""

    start: int
    end: int
    side: int
    field: str


@dataclass(frozen=True)
class Resolved:
    """An expression whose names are those of an arc."""

    piece: Piece
    text: str
    references: tuple[FieldReference, ...]
    meant: Node | None = field(default=None, compare=False, repr=False)
    """Its tree, whose literals know their places in the piece."""

    @property
    def tree(self) -> Node:
        return parse(self.text)

    @property
    def sides(self) -> frozenset[int]:
        return frozenset(reference.side for reference in self.references)


def resolve(
    piece: Piece, sides: Sequence[FromSide], target: Target, extra: Mapping[str, str] | None = None
) -> Resolved:
    """Put `target` in place of every field; `extra` maps further names to texts.

    >>> m1 = FromSide("M1", Schema.parse("ts int"))
    >>> m2 = FromSide("M2", Schema.parse("ts int, len int"))
    >>> text = "M1.ts <= M2.ts + len"
    >>> resolve(Piece(text, 0, len(text)), [m1, m2], lambda s, f: f"{'lr'[s]}.{f}").text
    'l.ts <= r.ts + r.len'
    """
    extra = {**_constants(piece.tree, sides), **(extra or {})}
    found = list(_references(piece, sides, extra))
    text, at = "", 0
    for reference in found:
        text += piece.text[at : reference.start]
        beyond = reference.side < 0
        text += f"({extra[reference.field]})" if beyond else target(reference.side, reference.field)
        at = reference.end
    text += piece.text[at:]

    def look(node: Node) -> Node | None:
        if isinstance(node, Member) and isinstance(node.base, Name):
            side = _named(node.base.name, sides)
            return None if side is None else parse(target(side, _field(sides[side], node.name)))
        if isinstance(node, Name):
            side = next((i for i, s in enumerate(sides) if node.name in s.schema), None)
            if side is not None:
                return parse(target(side, _field(sides[side], node.name)))
            return unplaced(parse(extra[node.name.lower()]))
        return None

    with piece.located():
        meant = substituted(piece.tree, look)
    if not _reads_as(text, meant):
        raise piece.error(
            "cannot tell which of these words are fields", hint="write S.x for a field x of S"
        )
    return Resolved(piece, text, tuple(r for r in found if r.side >= 0), meant)


def unplaced(tree: Node) -> Node:
    """A tree that was read from no part of the query's text."""

    def look(node: Node) -> Node | None:
        return replace(node, place=None) if isinstance(node, Literal) else None

    return substituted(tree, look)


def _constants(tree: Node, sides: Sequence[FromSide]) -> dict[str, str]:
    """Bare words in capitals that are compared with text: `flag = SYN`, as the papers write."""
    found: dict[str, str] = {}
    for node in walk(tree):
        if isinstance(node, Call) and node.name in ("=", "<>") and len(node.args) == 2:
            for word, other in (node.args, node.args[::-1]):
                if isinstance(word, Name) and word.name.isupper() and _is_text(other, sides):
                    found[word.name.lower()] = f"'{word.name}'"
    fields = {field.name.lower() for side in sides for field in side.schema}
    return {word: text for word, text in found.items() if word not in fields}


def _is_text(node: Node, sides: Sequence[FromSide]) -> bool:
    """Whether a node is a string field."""
    if isinstance(node, Member) and isinstance(node.base, Name):
        side = _named(node.base.name, sides)
        schemas = [] if side is None else [sides[side].schema]
    else:
        schemas = [side.schema for side in sides] if isinstance(node, Name) else []
    name = node.name if isinstance(node, Member | Name) else ""
    return any(name in s and s.field(name).type.name == "string" for s in schemas)


def _reads_as(text: str, meant: Node) -> bool:
    try:
        return parse(text) == meant
    except NetworkError:
        return False


def is_aggregated(tree: Node) -> bool:
    """Whether an expression calls an aggregate."""
    return any(isinstance(node, Call) and node.name in AGGREGATES for node in walk(tree))


def without_aggregates(text: str, name_of: Callable[[str], str]) -> str:
    """The text with a name in place of each aggregate call.

    >>> without_aggregates("sum(a) / count(*)", lambda call: call[0])
    's / c'
    """
    result, at = "", 0
    for call in _aggregates(parse(text)):
        assert call.place is not None
        start, end = call.place.whole
        result += text[at:start] + name_of(text[start:end])
        at = end
    return result + text[at:]


def conjuncts(piece: Piece) -> list[Piece]:
    """The predicates that AND joins, each with its place.

    >>> text = "a between 1 and 2 and (b or c)"
    >>> [part.text for part in conjuncts(Piece(text, 0, len(text)))]
    ['a between 1 and 2', '(b or c)']
    """
    listed = tokens(piece.text)[:-1]
    found: list[list[Token]] = [[]]
    depth = between = 0
    for token in listed:
        word = token.text if token.kind == "word" else ""
        if token.kind == "op":
            depth += (token.text in "([") - (token.text in ")]")
        depth += (word == "case") - (word == "end")
        between += word == "between" and not depth
        if word == "and" and not depth and not between:
            found.append([])
            continue
        between -= word == "and" and not depth
        found[-1].append(token)
    pieces = [piece.part(part[0].start, part[-1].end) for part in found if part]
    if len(pieces) == 1 or len(pieces) != len(found):
        return [piece]
    return pieces if Call("and", tuple(p.tree for p in pieces)) == piece.tree else [piece]


def substituted(
    node: Node, look: Callable[[Node], Node | None], bound: frozenset[str] = frozenset()
) -> Node:
    """The tree with what `look` gives in place of nodes; a lambda's parameters stay."""
    base = node.base if isinstance(node, Member) else node
    if not (isinstance(base, Name) and base.name.lower() in bound):
        found = look(node)
        if found is not None:
            return found
    elif isinstance(node, Name):
        return node
    if isinstance(node, Lambda):
        bound = bound | {parameter.lower() for parameter in node.parameters}
    rebuilt: Node = _rebuilt(node, lambda child: substituted(child, look, bound))
    return rebuilt


def _rebuilt(value: Any, change: Callable[[Node], Node]) -> Any:
    """A node with its children changed, wherever in it they stand."""
    changes: dict[str, Any] = {}
    for part in fields(value):
        held = getattr(value, part.name)
        changes[part.name] = _changed(held, change)
    return replace(value, **changes)


def _changed(held: Any, change: Callable[[Node], Node]) -> Any:
    if isinstance(held, Node):
        return change(held)
    if isinstance(held, tuple):
        return tuple(_changed(part, change) for part in held)
    if isinstance(held, Clauses):
        return _rebuilt(held, change)
    return held


def _aggregates(node: Node) -> Iterator[Call]:
    """The outermost aggregate calls, in order of their places."""
    found: list[Call] = []
    pending = [node]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and node.name in AGGREGATES:
            found.append(node)
        else:
            pending += children(node)
    return iter(sorted(found, key=lambda call: call.place.whole if call.place else (0, 0)))


def _references(
    piece: Piece, sides: Sequence[FromSide], extra: Mapping[str, str]
) -> Iterator[FieldReference]:
    free = {name.lower() for name in free_names(piece.tree)}
    found = tokens(piece.text)
    for at, token in enumerate(found):
        if at and found[at - 1].end == token.start and _is(found[at - 1], ":"):
            name = f":{_text(piece, token)}"
            if name in free_names(piece.tree):
                _require_parameter(piece.part(found[at - 1].start, token.end), name, extra)
                yield FieldReference(found[at - 1].start, token.end, -1, name.lower())
            continue
        if token.kind not in ("word", "quoted") or (at and _is(found[at - 1], ".")):
            continue
        name = _text(piece, token)
        if name.lower() not in free or (token.kind == "word" and _is(found[at + 1], "(")):
            continue
        dotted = _is(found[at + 1], ".") and found[at + 2].kind in ("word", "quoted")
        side = _named(name, sides) if dotted else None
        if side is not None:
            last = found[at + 2]
            with piece.part(last.start, last.end).located():
                field = _field(sides[side], _text(piece, last))
            yield FieldReference(token.start, last.end, side, field)
            continue
        place = piece.part(token.start, token.end)
        side = _holder(name, sides, place)
        if side is not None:
            field = _field(sides[side], name)
            yield FieldReference(token.start, token.end, side, field)
        elif name.lower() in extra:
            yield FieldReference(token.start, token.end, -1, name.lower())
        else:
            raise _unknown(name, sides, place, dotted)


def _require_parameter(place: Piece, name: str, extra: Mapping[str, str]) -> None:
    """Refuse a `:name` that is not in `extra`."""
    if name.lower() not in extra:
        names = [known_as[1:] for known_as in extra if known_as.startswith(":")]
        raise place.error(
            f"there is no parameter {name}; {list_existing(names)}",
            code="UNKNOWN_PARAMETER",
            hint=closest(name[1:], names) or "the columns of a family's values are its parameters",
        )


def _holder(name: str, sides: Sequence[FromSide], place: Piece) -> int | None:
    """The side that has a field of this name."""
    holders = [at for at, side in enumerate(sides) if name in side.schema]
    if len(holders) > 1:
        names = " and ".join(str(sides[at].name or "the other stream") for at in holders)
        raise place.error(
            f"{name} is a field of {names}",
            code="AMBIGUOUS_FIELD",
            hint=f"write {sides[holders[0]].name or 'the stream'}.{name}",
        )
    return holders[0] if holders else None


def _unknown(name: str, sides: Sequence[FromSide], place: Piece, dotted: bool) -> NetworkError:
    every = [field for side in sides for field in side.schema.names]
    named = [side.name for side in sides if side.name]
    if dotted:
        message = f"there is no stream {name} here; {list_existing(named)}"
        return place.error(message, code="UNKNOWN_STREAM", hint=closest(name, named))
    hint = closest(name, every) or f"text stands in quotes: '{name}'"
    return place.error(
        f"there is no field {name}; {list_existing(set(every))}", code="UNKNOWN_FIELD", hint=hint
    )


def _named(name: str, sides: Sequence[FromSide]) -> int | None:
    names = [side.name.lower() if side.name else None for side in sides]
    return names.index(name.lower()) if name.lower() in names else None


def _field(side: FromSide, name: str) -> str:
    return side.schema.field(name).name


def _text(piece: Piece, token: Token) -> str:
    text = piece.text[token.start : token.end]
    return text[1:-1].replace("``", "`") if token.kind == "quoted" else text


def _is(token: Token, text: str) -> bool:
    return token.kind == "op" and token.text == text
