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
UNCLOSED = "a quoted field is never closed"


class Record(NamedTuple):
    """One record of a block: bytes `start` to `end` without the line end, the next at `after`."""

    start: int
    end: int
    after: int
    fields: list[bytes | None]
    """None is an empty field without quotes."""
    broken: str | None = None


def records(block: bytes, *, final: bool = True) -> Iterator[Record]:
    r"""The records of a block, blank lines as one empty field.

    Unless `final`, a record that the block may only begin is left out. An unclosed quote costs its
    own line only.

    >>> [r.fields for r in records(b'1,"a\n""b"\n,""\n')]
    [[b'1', b'a\n"b'], [None, b'']]
    """
    at, size = 0, len(block)
    quotes = b'"' in block
    while at < size:
        found = LINE_END.search(block, at)
        end, after = found.span() if found else (size, size)
        if quotes and block.find(b'"', at, end) >= 0:
            record = _quoted(block, at)
            if record is None:
                if not final:
                    return
                record = Record(at, end, after, [], UNCLOSED)
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


def _quoted(block: bytes, start: int) -> Record | None:
    """The record at `start`, field by field; None if a quote in it is never closed."""
    fields: list[bytes | None] = []
    at = start
    while True:
        if block[at : at + 1] == b'"':
            parts: list[bytes] = []
            at += 1
            while True:
                quote = block.find(b'"', at)
                if quote < 0:
                    return None
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


def cut(block: bytes, final: bool) -> tuple[int, bool]:
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
        return _slow_cut(block, final), False
    if final and len(marks) % 2 == 0:
        return len(block), True
    if b"\r" in block.replace(b"\r\n", b""):
        return _slow_cut(block, False), True
    ends = np.flatnonzero(raw == LF)
    outside = ends[np.searchsorted(marks, ends) % 2 == 0]
    return (int(outside[-1]) + 1 if len(outside) else 0), True


def _last_line_end(block: bytes) -> int:
    return max(block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1)) + 1


def _slow_cut(block: bytes, final: bool) -> int:
    if final:
        return len(block)
    after = 0
    for record in records(block, final=False):
        after = record.after
    return after
