"""What a source gives: a run of rows in order, with what did not fit and where to go on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

ROW_CHARS = 2_000


@dataclass(frozen=True)
class DeadLetter:
    """A row that does not fit its stream's schema."""

    source: str
    place: str
    """The file's path, or `enqueue`."""
    line: int | None
    """Physical line where the record starts, from 1 (a header is line 1); None if it has none."""
    reason: str
    row: str
    """The offending text, at most `ROW_CHARS` of it, undecodable bytes escaped."""


@dataclass(frozen=True)
class Punctuation:
    """No tuple of `group` below `value` comes at or after `position`."""

    position: int
    value: Any
    group: tuple[Any, ...] = ()


@dataclass(frozen=True)
class RecordPositions:
    """How many of a source's records are behind us after each row of a chunk.

    A record is whatever became a row or a dead letter. Counts start at `base`, a place the source
    can jump to; what `base` holds is the source's business, but it is JSON.
    """

    base: Any
    passed: np.ndarray
    """int64, for each accepted row the records passed once it is taken."""
    end: int
    """Records passed at the end of the chunk, trailing dead letters included."""
    dead: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """int64, for each dead letter the records passed once it is passed."""

    def position(self) -> Any:
        """Where to go on after the last of these records; JSON."""
        return {"base": self.base, "skip": self.end}


@dataclass(frozen=True)
class Standing(RecordPositions):
    """The marks of rows that pass no record: the source stays at the position `base`."""

    @staticmethod
    def at(position: Any, count: int = 1) -> Standing:
        return Standing(position, np.zeros(count, np.int64), 0)

    def position(self) -> Any:
        return self.base


@dataclass(frozen=True)
class Origins:
    """For each accepted row of a chunk the source or partition that it comes from."""

    names: tuple[str, ...]
    codes: np.ndarray
    """int32, for each accepted row the place of its origin's name among `names`."""
    events: np.ndarray
    """int8, for each accepted row `ARRIVED`, or what it says of the origin alone."""

    def slice(self, start: int, stop: int) -> Origins:
        return Origins(self.names, self.codes[start:stop], self.events[start:stop])


@dataclass(frozen=True)
class Chunk:
    """Rows a source gives in order: tuples, punctuations, and what is said of origins alone.

    >>> two = Chunk.of_tuples(pa.table({"a": [7, 8]}), base=None, skip=5)
    >>> two.offset, two.split(1)[0].offset
    ({'base': None, 'skip': 7}, {'base': None, 'skip': 6})
    """

    count: int
    """Accepted rows: all but dead letters, which may come without any."""
    tuples: pa.Table
    positions: np.ndarray
    """int64, for each tuple its place in 0..count-1, ascending."""
    punctuations: tuple[Punctuation, ...]
    at_us: np.ndarray | None
    """int64, arrival time of each accepted row, or None if the source has none."""
    dead: tuple[DeadLetter, ...]
    offsets: RecordPositions = field(repr=False)
    origins: Origins | None = None
    """None if the stream has this source alone, and the source is not partitioned."""

    @staticmethod
    def of_tuples(tuples: pa.Table, *, base: Any, skip: int = 0) -> Chunk:
        """A chunk in which every record is a tuple."""
        count = tuples.num_rows
        passed = np.arange(skip + 1, skip + count + 1, dtype=np.int64)
        positions = np.arange(count, dtype=np.int64)
        return Chunk(
            count, tuples, positions, (), None, (), RecordPositions(base, passed, skip + count)
        )

    @property
    def offset(self) -> Any:
        """Where to `seek` to go on after this chunk; JSON."""
        return self.offsets.position()

    @property
    def carries(self) -> bool:
        """Whether there is a tuple or a punctuation."""
        return bool(self.tuples.num_rows or self.punctuations)

    def split(self, n: int) -> tuple[Chunk, Chunk]:
        """The first `n` accepted rows and the rest; zero-copy."""
        end = self.offsets.end
        rest = self.count if n >= self.count else n
        if rest == self.count:
            return self, self._between(rest, rest, end, end)
        return self.slice(0, n), self.slice(n, self.count)

    def slice(self, start: int, stop: int) -> Chunk:
        """Accepted rows `start` to `stop`; costs the size of the slice, not of the chunk.

        A dead letter goes where it was passed: those after row `stop` with what follows, trailing
        ones with the last row.
        """
        passed = self.offsets.passed
        low = self._begin() if start <= 0 else int(passed[min(start, self.count) - 1])
        if start >= self.count > 0:
            low = self.offsets.end
        high = low
        if stop >= self.count:
            high = self.offsets.end
        elif stop > 0:
            high = int(passed[stop - 1])
        return self._between(min(start, self.count), min(stop, self.count), low, high)

    def after(self, skip: int) -> Chunk:
        """What is left once `skip` records, counted from the base, have been passed."""
        skip = min(skip, self.offsets.end)
        start = int(np.searchsorted(self.offsets.passed, skip, "right"))
        return self._between(start, self.count, skip, self.offsets.end)

    def _begin(self) -> int:
        """Records passed before the chunk."""
        marks = self.offsets
        firsts = [int(passed[0]) for passed in (marks.passed, marks.dead) if len(passed)]
        return min(firsts, default=marks.end + 1) - 1

    def _between(self, start: int, stop: int, low: int, high: int) -> Chunk:
        """Rows `start` to `stop`, and the dead letters among the records after `low` to `high`."""
        if start == 0 and stop == self.count and low <= self._begin() and high == self.offsets.end:
            return self
        marks = self.offsets
        lo, hi = (int(i) for i in np.searchsorted(self.positions, (start, stop)))
        first, end = (int(i) for i in np.searchsorted(marks.dead, (low, high), "right"))
        at_least = partial(bisect_left, self.punctuations, key=lambda p: p.position)
        noted = self.punctuations[at_least(start) : at_least(stop)]
        return Chunk(
            stop - start,
            self.tuples.slice(lo, hi - lo),
            self.positions[lo:hi] - start,
            tuple(replace(p, position=p.position - start) for p in noted),
            None if self.at_us is None else self.at_us[start:stop],
            self.dead[first:end],
            replace(marks, passed=marks.passed[start:stop], end=high, dead=marks.dead[first:end]),
            None if self.origins is None else self.origins.slice(start, stop),
        )


def of_events(
    schema: pa.Schema, names: Sequence[str], event: int, offsets: RecordPositions
) -> Chunk:
    """A chunk that only says something of origins, the same of each."""
    count = len(names)
    origins = Origins(
        tuple(names), np.arange(count, dtype=np.int32), np.full(count, event, np.int8)
    )
    nothing = np.empty(0, np.int64)
    return Chunk(count, schema.empty_table(), nothing, (), None, (), offsets, origins)


def joined(chunks: Sequence[Chunk]) -> Chunk:
    """Chunks of one batch as one; it passes its records as if none had come before.

    >>> two = [Chunk.of_tuples(pa.table({"a": [n]}), base=None) for n in (7, 8)]
    >>> joined(two).tuples.to_pylist(), joined(two).count
    ([{'a': 7}, {'a': 8}], 2)
    """
    if len(chunks) == 1:
        return chunks[0]
    starts = np.cumsum([0, *(chunk.count for chunk in chunks)])
    count, timed = int(starts[-1]), all(chunk.at_us is not None for chunk in chunks)
    placed = list(zip(starts.tolist(), chunks, strict=False))
    return Chunk(
        count,
        pa.concat_tables([chunk.tuples for chunk in chunks]),
        np.concatenate([start + chunk.positions for start, chunk in placed]),
        tuple(
            replace(one, position=start + one.position)
            for start, chunk in placed
            for one in chunk.punctuations
        ),
        np.concatenate([c.at_us for c in chunks if c.at_us is not None]) if timed else None,
        tuple(letter for chunk in chunks for letter in chunk.dead),
        RecordPositions(None, np.arange(1, count + 1, dtype=np.int64), count),
    )
