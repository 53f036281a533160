"""Batches in other forms than Python's or Arrow's, as feeds bring them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from auroral.io.chunk import ROW_CHARS, Chunk, joined
from auroral.io.readers.assemble import RecordPlace

if TYPE_CHECKING:
    from auroral.io.rows import RowReader

ENQUEUED = "enqueue"
"""The place that dead letters name if the batch does not say where it comes from."""


class EncodedBatch(ABC):
    """A batch that `enqueue` decodes by the stream's schema.

    A record that cannot be decoded is a dead letter with its line, the reason and its text.
    """

    @abstractmethod
    def chunk(self, rows: RowReader) -> Chunk:
        """The chunk that the batch makes for the stream of a reader."""


@dataclass(frozen=True)
class DecodedRows(EncodedBatch):
    """Rows that a converter has decoded, and why some records are none.

    >>> given = DecodedRows([{"sid": 1}, None], {1: "no field set"}, ["m sid=1i", "m"])
    >>> given.good, given.bad
    ([{'sid': 1}], [(1, 'no field set', 'm')])
    """

    rows: Sequence[Mapping[str, Any] | None]
    """One for each record; None, or whatever could be read, where `broken` gives a reason."""
    broken: Mapping[int, str]
    """Why records are no rows, by their place among `rows`."""
    texts: Sequence[str | bytes] = field(repr=False)
    """What each record was made of; a dead letter shows it."""
    lines: Sequence[int] | None = field(default=None, repr=False)
    """The line at which each record begins, from 1; counted by records if None."""
    place: str = ENQUEUED

    @property
    def good(self) -> list[Mapping[str, Any]]:
        """The rows of the records that could be decoded."""
        return [r for i, r in enumerate(self.rows) if i not in self.broken and r is not None]

    @property
    def bad(self) -> list[tuple[int, str, str]]:
        """The other records: place among the records, reason and text."""
        return [(i, why, shown_text(self.texts[i])) for i, why in sorted(self.broken.items())]

    def at(self, place: str, line: int) -> DecodedRows:
        """The same records, which begin at a line of a place."""
        lines = self.lines or range(1, len(self.rows) + 1)
        return replace(self, place=place, lines=[line - 1 + number for number in lines])

    def chunk(self, rows: RowReader) -> Chunk:
        lines = self.lines
        place = RecordPlace(
            self.place,
            lambda i: i + 1 if lines is None else lines[i],
            lambda i: shown_text(self.texts[i]),
        )
        return rows.read_rows(self.rows, place=place, broken=dict(self.broken))


@dataclass(frozen=True)
class JoinedBatch(EncodedBatch):
    """Several batches as one, so that many small ones cost little."""

    batches: tuple[EncodedBatch, ...]

    def chunk(self, rows: RowReader) -> Chunk:
        return joined([batch.chunk(rows) for batch in self.batches])


def shown_text(text: str | bytes) -> str:
    """A record's text as a dead letter shows it: bytes that are no UTF-8 are escaped."""
    if isinstance(text, bytes):
        return text[: 4 * ROW_CHARS].decode(errors="backslashreplace")[:ROW_CHARS]
    return text[:ROW_CHARS].encode(errors="backslashreplace").decode()
