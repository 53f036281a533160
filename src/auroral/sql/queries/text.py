"""The text of a continuous query, in pieces that know their position."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from auroral.errors import NetworkError
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Node

_COLUMN = re.compile(r",? at column (\d+)(?:: .*)?$", re.DOTALL)

_NO_SCALAR = "expected a scalar expression, found the "
_INSTEAD = {
    "AGGREGATE": "aggregates stand in SELECT and HAVING, over a window: SELECT …"
    " FROM s [RANGE 1 minute, WA at] GROUP BY k HAVING avg(x) > 3",
    "WINDOW_FUNCTION": "a window stands after the stream:"
    " FROM s [RANGE 1 minute, WA at] GROUP BY k",
}
"""What a query is told, where an expression in a box is told to use another box."""


@dataclass(frozen=True)
class Piece:
    """A part of a query's text, taken verbatim.

    >>> where = Piece("SELECT a\\nFROM s WHERE a > 1", 22, 27)
    >>> where.text, where.place()
    ('a > 1', 'line 2, column 14')
    """

    sql: str
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.sql[self.start : self.end]

    @cached_property
    def tree(self) -> Node:
        """The piece, parsed as an expression."""
        with self.located():
            return parse(self.text)

    def part(self, start: int, end: int) -> Piece:
        """A part of it, counted from its own beginning."""
        return Piece(self.sql, self.start + start, self.start + end)

    def place(self) -> str:
        """The position where the piece begins, for error messages."""
        before = self.sql[: self.start]
        column = self.start - (before.rfind("\n") + 1) + 1
        return f"line {before.count(chr(10)) + 1}, column {column}"

    def error(
        self, message: str, *, code: str = "BAD_QUERY", hint: str | None = None
    ) -> NetworkError:
        """An error that points at this piece."""
        return NetworkError(code, message, where=self.place(), hint=hint)

    @contextmanager
    def located(self, places: Mapping[str, Piece] | None = None) -> Iterator[None]:
        """Mistakes found inside stand here, or at the place of the key of a box they name."""
        try:
            yield
        except NetworkError as error:
            raise self._placed(error, places or {}) from None

    def _placed(self, error: NetworkError, places: Mapping[str, Piece]) -> NetworkError:
        where = error.where or ""
        if where.startswith("line "):
            return error
        key = where.partition(",")[0].removeprefix("key ")
        named = [n for n in places if key == n or key.startswith(f"{n}.")]
        piece = places[max(named, key=len)] if named else self
        column = _COLUMN.search(error.message)
        if column:
            at = min(int(column[1]) - 1, piece.end - piece.start)
            piece = piece.part(at, piece.end - piece.start)
        message = _COLUMN.sub("", error.message)
        instead = _INSTEAD.get(error.code) if message.startswith(_NO_SCALAR) else None
        return NetworkError(error.code, message, where=piece.place(), hint=instead or error.hint)
