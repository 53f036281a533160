"""Windows as the papers write them: `[RANGE 1 min, SLIDE 1 min, WA ts]`, `[ROWS 100]`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from auroral.network.types import Type
from auroral.progress.durations import LONGEST, parse_duration_us
from auroral.sql.expressions.lexer import Token
from auroral.sql.queries.text import Piece

KEYS = ("RANGE", "ROWS", "SLIDE", "WA")
_WORDS = tuple(key.lower() for key in KEYS)
_NUMBER = re.compile(r"\d+(\.\d*)?")
_TIMELY = ("timestamp", "timestamp_ntz", "date")


@dataclass(frozen=True)
class WindowClause:
    """A window in brackets, in any order of its keys; the values are as written."""

    piece: Piece
    range: Piece | None = None
    rows: Piece | None = None
    slide: Piece | None = None
    wa: Piece | None = None

    def count(self, value: Piece) -> int:
        """A number of rows."""
        if not value.text.isdecimal() or int(value.text) < 1:
            raise value.error(f"expected a number of rows, found {value.text}", code="BAD_WINDOW")
        if int(value.text) > LONGEST:
            raise value.error(f"{value.text} rows are too many", code="BAD_WINDOW")
        return int(value.text)


def begins_window(tokens: Sequence[Token], at: int, *, anywhere: bool) -> bool:
    """Whether a bracket opens a window rather than an index; after a stream it always does."""
    if tokens[at].text != "[" or tokens[at].kind != "op":
        return False
    key, value = tokens[at + 1], tokens[min(at + 2, len(tokens) - 1)]
    known = key.kind == "word" and key.text in _WORDS
    return anywhere or (known and value.kind in ("number", "word", "quoted"))


def read_window(sql: str, tokens: Sequence[Token], at: int) -> tuple[WindowClause, int]:
    """The window whose bracket is at a token, and the token after it."""
    bracket = Piece(sql, tokens[at].start, tokens[at].end)
    last = at + 1
    while tokens[last].text != "]" or tokens[last].kind != "op":
        if tokens[last].kind == "end":
            raise bracket.error("the window's [ is never closed", code="SYNTAX_ERROR")
        last += 1
    found: dict[str, Piece] = {}
    next_ = at + 1
    while next_ < last:
        key = tokens[next_]
        stop = _value_end(tokens, next_ + 1, last)
        whole = Piece(sql, key.start, max(key.end, tokens[stop - 1].end))
        if key.kind != "word" or key.text not in _WORDS:
            raise whole.error(
                f"expected {', '.join(KEYS)} in a window, found {whole.text!r}", code="BAD_WINDOW"
            )
        if stop == next_ + 1:
            raise whole.error(f"expected a value after {whole.text}", code="BAD_WINDOW")
        if key.text in found:
            raise whole.error(f"{key.text.upper()} stands twice in a window", code="BAD_WINDOW")
        found[key.text] = Piece(sql, tokens[next_ + 1].start, tokens[stop - 1].end)
        next_ = stop + (tokens[stop].text == ",")
    clause = WindowClause(Piece(sql, bracket.start, tokens[last].end), **found)
    _require_one_kind(clause)
    return clause, last + 1


def length(value: Piece, of: Type) -> int | float | str:
    """A window's length in the units of its attribute; of a number, time counts in seconds.

    >>> text = "[RANGE 1 min]"
    >>> length(Piece(text, 7, 12), Type("bigint")), length(Piece(text, 7, 12), Type("timestamp"))
    (60, '1 min')
    """
    if _NUMBER.fullmatch(value.text):
        return int(value.text) if value.text.isdecimal() else float(value.text)
    with value.located():
        seconds = parse_duration_us(value.text) / 1_000_000
    if of.name in _TIMELY:
        return value.text
    return int(seconds) if seconds == int(seconds) else seconds


def _value_end(tokens: Sequence[Token], at: int, last: int) -> int:
    """The token after a value: a comma, the next key or the bracket."""
    stop = at
    while stop < last and tokens[stop].text != ",":
        if stop > at and tokens[stop].kind == "word" and tokens[stop].text in _WORDS:
            break
        stop += 1
    return stop


def _require_one_kind(clause: WindowClause) -> None:
    if clause.rows is not None:
        for other in (clause.range, clause.wa):
            if other is not None:
                raise other.error(
                    "a window counts ROWS or spans a RANGE of an attribute, not both",
                    code="BAD_WINDOW",
                )
    elif clause.slide is not None and clause.range is None:
        raise clause.slide.error("a window that slides needs a RANGE or ROWS", code="BAD_WINDOW")
