"""The exact CSV lexer, and where a block of CSV may be cut.

Quotes count at the start of a field only, as in Arrow's and Python's readers; text after a closing
quote belongs to the field. Arrow reads the many blocks without surprises, this reads the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

QUOTE, COMMA, CR, LF = b'",\r\n'
LINE_END = re.compile(rb"\r\n|\n|\r")
_FIELD_END = re.compile(rb",|\r\n|\n|\r")
FIELD_LINES = 1_000
"""A quoted field of more lines is taken for a quote that somebody forgot to close."""


class Record(NamedTuple):
    """One record of a block: bytes `start` to `end` without the line end, the next at `after`."""

    start: int
    end: int
    after: int
    fields: list[bytes | None]
    """None is an empty field without quotes."""
    broken: str | None = None


class _UnclosedError(Exception):
    """A quote that is not closed in the lines it may be; whether more lines could change that."""

    def __init__(self, opened: int, for_good: bool):
        super().__init__(opened)
        self.opened = opened
        self.for_good = for_good


def unclosed(most_lines: int) -> str:
    """Why a record with such a quote is none."""
    return f"a quoted field is not closed within {most_lines} lines"


def records(block: bytes, *, final: bool = True, most_lines: int = FIELD_LINES) -> Iterator[Record]:
    r"""The records of a block, blank lines as one empty field.

    Unless `final`, a record that the block may only begin is left out. A quote that is not closed
    within `most_lines` lines costs the record up to the end of the line it stands in.

    >>> [r.fields for r in records(b'1,"a\n""b"\n,""\n')]
    [[b'1', b'a\n"b'], [None, b'']]
    """
    at, size = 0, len(block)
    quotes = b'"' in block
    while at < size:
        found = LINE_END.search(block, at)
        end, after = found.span() if found else (size, size)
        if quotes and block.find(b'"', at, end) >= 0:
            try:
                record = _quoted(block, at, most_lines)
            except _UnclosedError as quote:
                if not final and not quote.for_good:
                    return
                found = LINE_END.search(block, quote.opened)
                end, after = found.span() if found else (size, size)
                record = Record(at, end, after, [], unclosed(most_lines))
        else:
            fields = block[at:end].split(b",")
            record = Record(at, end, after, [field or None for field in fields])
        # A carriage return at the very end may be half a line end.
        if not final and (record.after == record.end or _half(block, record)):
            return
        yield record
        at = record.after


def _half(block: bytes, record: Record) -> bool:
    return record.after == len(block) and block[-1] == CR


def _quoted(block: bytes, start: int, most_lines: int) -> Record:
    """The record at `start`, field by field."""
    fields: list[bytes | None] = []
    at = start
    while True:
        if block[at : at + 1] == b'"':
            parts: list[bytes] = []
            opened, more = at, most_lines
            at += 1
            while True:
                quote = block.find(b'"', at)
                more -= lines(block[at : quote if quote >= 0 else len(block)])
                if quote < 0 or more <= 0:
                    raise _UnclosedError(opened, for_good=more <= 0)
                if block[quote + 1 : quote + 2] != b'"':
                    break
                parts.append(block[at : quote + 1])
                at = quote + 2
            found = _FIELD_END.search(block, quote + 1)
            end = found.start() if found else len(block)
            fields.append(b"".join((*parts, block[at:quote], block[quote + 1 : end])))
        else:
            found = _FIELD_END.search(block, at)
            end = found.start() if found else len(block)
            fields.append(block[at:end] or None)
        if found is None:
            return Record(start, end, end, fields)
        if found.group() != b",":
            return Record(start, end, found.end(), fields)
        at = found.end()


def lines(block: bytes) -> int:
    """How many physical lines end in a block."""
    ends = block.count(b"\n")
    return ends + block.count(b"\r") - block.count(b"\r\n") if b"\r" in block else ends


def cut(block: bytes, final: bool, most_lines: int = FIELD_LINES) -> tuple[int, bool]:
    r"""Where the last whole record ends, and whether the quotes up to there are well placed.

    >>> cut(b'1,2\n3,"x\ny', final=False)
    (4, True)
    """
    if b'"' not in block:
        return (len(block) if final else _last_line_end(block)), True
    raw = np.frombuffer(block, dtype=np.uint8)
    marks = np.flatnonzero(raw == QUOTE)
    opening = marks[::2]
    before = raw[np.maximum(opening - 1, 0)]
    fine = (opening == 0) | np.isin(before, (QUOTE, COMMA, CR, LF))
    if not fine.all():
        return _slow_cut(block, final, most_lines), False
    bare = b"\r" in block.replace(b"\r\n", b"")
    ends = np.flatnonzero((raw == LF) | _bare_returns(raw) if bare else raw == LF)
    inside = np.searchsorted(marks, ends) % 2 == 1
    if np.count_nonzero(inside) >= most_lines and _longest(marks, ends, len(block)) >= most_lines:
        return _slow_cut(block, final, most_lines), False
    if final:
        return len(block), len(marks) % 2 == 0
    if bare:
        return _slow_cut(block, False, most_lines), True
    outside = ends[~inside]
    return (int(outside[-1]) + 1 if len(outside) else 0), True


def _bare_returns(raw: np.ndarray) -> np.ndarray:
    """Where a carriage return alone ends a line."""
    follows = np.append(raw[1:] != LF, True)
    return np.asarray((raw == CR) & follows)


def _longest(marks: np.ndarray, ends: np.ndarray, size: int) -> int:
    """How many lines end in the quoted field that has most of them; the last may be open."""
    opening, closing = marks[::2], marks[1::2]
    if len(closing) < len(opening):
        closing = np.append(closing, size)
    # Two quotes in a row are one in the field.
    first = np.append(True, opening[1:] != closing[:-1] + 1)
    last = np.append(first[1:], True)
    passed = np.searchsorted(ends, closing[last]) - np.searchsorted(ends, opening[first])
    return int(passed.max())


def _last_line_end(block: bytes) -> int:
    return max(block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1)) + 1


def _slow_cut(block: bytes, final: bool, most_lines: int) -> int:
    if final:
        return len(block)
    after = 0
    for record in records(block, final=False, most_lines=most_lines):
        after = record.after
    return after
