"""FROM of a continuous query: streams, unions of streams, their names and windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auroral.errors import NetworkError
from auroral.sql.expressions.lexer import Token
from auroral.sql.queries.text import Piece
from auroral.sql.queries.windows import WindowClause

_OUTER = ("left", "right", "full", "outer", "natural", "semi", "anti", "lateral")
_NO_ALIAS = (
    *_OUTER,
    "union",
    "join",
    "inner",
    "cross",
    "on",
    "using",
    "as",
    "all",
    "order",
    "limit",
)


@dataclass(frozen=True)
class FromSource:
    """A stream, or several united, as FROM names them."""

    piece: Piece
    arcs: tuple[Piece, ...]
    alias: str | None
    window: WindowClause | None

    @property
    def name(self) -> str | None:
        """What its fields can be qualified with; a union without a name has none."""
        if self.alias is not None:
            return self.alias
        return arc_name(self.arcs[0]).rpartition(".")[2] if len(self.arcs) == 1 else None

    @property
    def label(self) -> str:
        return self.name or " UNION ".join(arc_name(arc) for arc in self.arcs)


def arc_name(piece: Piece) -> str:
    """The name of an arc, `box` or `box.port`."""
    return "".join(piece.text.replace("`", "").split())


def read_sources(
    sql: str, parts: Sequence[Token | WindowClause]
) -> tuple[tuple[FromSource, ...], tuple[Piece, ...]]:
    """The sources of FROM, and the conditions of JOIN … ON."""
    return _Reader(sql, parts).read()


def united(parts: Sequence[Token | WindowClause]) -> list[Token]:
    """The words UNION and UNION ALL between streams."""
    found: list[Token] = []
    for part in parts:
        if isinstance(part, Token) and part.kind == "word":
            after = found and found[-1].text == "union" and part.text in ("all", "distinct")
            if part.text == "union" or after:
                found.append(part)
    return found


def _require_own_names(sources: Sequence[FromSource]) -> None:
    """Refuse two streams of one name: nobody could tell whose field `name.x` is."""
    seen: set[str] = set()
    for source in sources:
        name = (source.name or "").lower()
        if name in seen:
            raise source.piece.error(
                f"two streams of FROM are called {source.name}",
                code="DUPLICATE_NAME",
                hint=f"name them with AS, as in {arc_name(source.arcs[0])} AS other",
            )
        seen |= {name} - {""}


class _Reader:
    def __init__(self, sql: str, parts: Sequence[Token | WindowClause]):
        self.sql = sql
        self.parts = parts
        self.at = 0
        self.conditions: list[Piece] = []

    def read(self) -> tuple[tuple[FromSource, ...], tuple[Piece, ...]]:
        sources = [self.source()]
        while self.at < len(self.parts):
            if self.sees("join", "inner", "cross"):
                self.join_word()
                sources.append(self.source())
                if self.sees("on"):
                    self.at += 1
                    self.conditions.append(self.condition())
            elif self.symbol(","):
                self.at += 1
                sources.append(self.source())
            else:
                raise self.unexpected("a comma, UNION or JOIN")
        _require_own_names(sources)
        return tuple(sources), tuple(self.conditions)

    def source(self) -> FromSource:
        start = self.at
        arcs, alias, window = [self.arc()], None, None
        while True:
            if self.sees("union") and alias is None and window is None:
                self.at += 1
                if self.sees("all", "distinct"):
                    self.all_word()
                arcs.append(self.arc())
            elif isinstance(part := self.part(), WindowClause) and window is None:
                window = part
                self.at += 1
            elif alias is None and (found := self.alias()) is not None:
                alias = found
            else:
                break
        if self.sees("union"):
            raise self.place().error(
                "the name and window of a union stand after its last stream", code="BAD_QUERY"
            )
        if isinstance(part := self.part(), WindowClause):
            raise part.piece.error("a stream has one window", code="BAD_WINDOW")
        return FromSource(self.between(start, self.at), tuple(arcs), alias, window)

    def arc(self) -> Piece:
        start = self.at
        if self.symbol("("):
            raise self.place().error("expected a stream, found a bracket", hint="name streams only")
        self.name("a stream")
        if self.symbol("."):
            self.at += 1
            self.name("a port after the dot")
        return self.between(start, self.at)

    def alias(self) -> str | None:
        if self.sees("as"):
            self.at += 1
            return self.name("a name after AS")
        part = self.part()
        if not isinstance(part, Token) or part.kind not in ("word", "quoted"):
            return None
        return None if part.kind == "word" and part.text in _NO_ALIAS else self.name("a name")

    def join_word(self) -> None:
        if self.sees("inner", "cross"):
            self.at += 1
        if not self.sees("join"):
            raise self.unexpected("JOIN")
        self.at += 1

    def all_word(self) -> None:
        if self.sees("distinct"):
            raise self.place().error(
                "a union of streams keeps all tuples", hint="leave out DISTINCT"
            )
        self.at += 1

    def condition(self) -> Piece:
        start, depth = self.at, 0
        while self.at < len(self.parts) and (depth or not self.ends_condition()):
            depth += (self.symbol("(") or self.symbol("[")) - (self.symbol(")") or self.symbol("]"))
            self.at += 1
        piece = self.between(start, self.at)
        _ = piece.tree
        return piece

    def ends_condition(self) -> bool:
        return self.symbol(",") or self.sees("join", "inner", "cross", *_OUTER)

    def name(self, expected: str) -> str:
        part = self.part()
        if not isinstance(part, Token) or part.kind not in ("word", "quoted"):
            raise self.unexpected(expected)
        self.at += 1
        return self.sql[part.start : part.end].strip("`")

    def part(self) -> Token | WindowClause | None:
        return self.parts[self.at] if self.at < len(self.parts) else None

    def sees(self, *words: str) -> bool:
        part = self.part()
        return isinstance(part, Token) and part.kind == "word" and part.text in words

    def symbol(self, text: str) -> bool:
        part = self.part()
        return isinstance(part, Token) and part.kind == "op" and part.text == text

    def unexpected(self, expected: str) -> NetworkError:
        place = self.place()
        if self.sees(*_OUTER):
            return place.error(
                "streams are joined by comma or JOIN only: every pair needs both tuples",
                hint=f"leave out {place.text.upper()}",
            )
        return place.error(f"expected {expected}, found {place.text or 'the end'}")

    def place(self) -> Piece:
        part = self.part()
        if part is None:
            return Piece(self.sql, len(self.sql), len(self.sql))
        return (
            part.piece if isinstance(part, WindowClause) else Piece(self.sql, part.start, part.end)
        )

    def between(self, start: int, stop: int) -> Piece:
        places = [p.piece if isinstance(p, WindowClause) else p for p in self.parts[start:stop]]
        if not places:
            return self.place()
        return Piece(self.sql, places[0].start, places[-1].end)
