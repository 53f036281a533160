"""Records, good and bad, to a chunk: tuples, punctuations and dead letters in their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.io.chunk import ROW_CHARS, Chunk, DeadLetter, Punctuation, RecordPositions
from auroral.io.readers.text import expected
from auroral.network.types import Field, Schema

Column: TypeAlias = pa.Array | pa.ChunkedArray
AT_BOUND_S = 9.2e12


@dataclass
class Records:
    """A run of records as read; `wrong` maps record numbers to reasons, for each column."""

    count: int
    columns: Sequence[Column]
    wrong: Sequence[dict[int, str]] = ()
    broken: dict[int, str] = field(default_factory=dict)
    """Records wrong as such, whatever their fields say."""
    at: Column | None = None
    at_wrong: dict[int, str] = field(default_factory=dict)
    punctuation: Column | None = None
    """Of the progress field's type; NULL in tuples."""
    punctuation_wrong: dict[int, str] = field(default_factory=dict)
    sources: Sequence[Any] = ()
    """What each record was made of, for who has to show it."""

    def take(self, order: np.ndarray) -> Records:
        """Some of the records, in another order."""
        places = {int(old): new for new, old in enumerate(order.tolist())} if self._faulty else {}
        index = pa.array(order)

        def moved(reasons: dict[int, str]) -> dict[int, str]:
            return {places[i]: why for i, why in reasons.items() if i in places}

        return Records(
            len(order),
            [column.take(index) for column in self.columns],
            [moved(reasons) for reasons in self.wrong],
            moved(self.broken),
            None if self.at is None else self.at.take(index),
            moved(self.at_wrong),
            None if self.punctuation is None else self.punctuation.take(index),
            moved(self.punctuation_wrong),
            [self.sources[i] for i in order.tolist()] if self.sources else (),
        )

    @property
    def _faulty(self) -> bool:
        others = (self.broken, self.at_wrong, self.punctuation_wrong)
        return any(self.wrong) or any(others)


@dataclass(frozen=True)
class RecordPlace:
    """Where records came from, for dead letters; `line` and `row` are asked for bad ones only."""

    name: str
    line: Callable[[int], int | None]
    row: Callable[[int], str]
    lines: Callable[[int], int] = lambda _: 1
    """How many lines a record spans."""

    def letter(self, stream: str, i: int, reason: str) -> DeadLetter:
        """The dead letter of a record, which says how much it takes with it."""
        line, spans = self.line(i), self.lines(i)
        if spans > 1:
            reason = f"{reason}; the record spans {spans} lines"
        return DeadLetter(stream, self.name, line, reason, cut(self.row(i)))


class Assembler:
    """Turns one stream's records into chunks."""

    def __init__(
        self, stream: str, schema: Schema, progress_on: str | None = None, by: Sequence[str] = ()
    ):
        self.stream = stream
        self.schema = schema
        self.arrow = schema.arrow()
        self.progress: Field | None = schema.field(progress_on) if progress_on else None
        self.by = tuple(schema.field(name).name for name in by)
        self._group = [schema.names.index(name) for name in self.by]

    def chunk(self, records: Records, place: RecordPlace, base: Any, skip: int = 0) -> Chunk:
        """The chunk the records make; `skip` records lie between `base` and them."""
        count = records.count
        at_us, late = self._arrival(records)
        punctual = self._punctual(records)
        reasons = self._reasons(records, punctual, late)
        table = pa.Table.from_arrays(list(records.columns), schema=self.arrow)
        if not reasons and punctual is None:
            passed = np.arange(skip + 1, skip + count + 1, dtype=np.int64)
            marks = RecordPositions(base, passed, skip + count)
            return Chunk(count, table, np.arange(count, dtype=np.int64), (), at_us, (), marks)
        keep = np.ones(count, dtype=bool)
        bad = sorted(reasons)
        keep[bad] = False
        accepted = np.flatnonzero(keep)
        rank = np.cumsum(keep) - 1
        plain = keep if punctual is None else keep & ~punctual
        dead = np.array(bad, dtype=np.int64) + (skip + 1)
        marks = RecordPositions(base, accepted + (skip + 1), skip + count, dead)
        return Chunk(
            len(accepted),
            table.filter(pa.array(plain)),
            rank[plain],
            () if punctual is None else self._punctuations(records, keep & punctual, rank),
            None if at_us is None else at_us[keep],
            tuple(place.letter(self.stream, i, reasons[i]) for i in bad),
            marks,
        )

    def _arrival(self, records: Records) -> tuple[np.ndarray | None, dict[int, str]]:
        if records.at is None:
            return None, {}
        seconds = records.at.cast(pa.float64())
        if isinstance(seconds, pa.ChunkedArray):
            seconds = seconds.combine_chunks()
        found = np.asarray(seconds.to_numpy(zero_copy_only=False), dtype=np.float64)
        wrong = dict(records.at_wrong)
        fine = np.abs(found) < AT_BOUND_S
        for i in np.flatnonzero(~fine).tolist():
            value = seconds[i].as_py()
            wrong.setdefault(i, "is missing" if value is None else expected("seconds", value))
        return np.rint(np.where(fine, found, 0) * 1e6).astype(np.int64), wrong

    def _punctual(self, records: Records) -> np.ndarray | None:
        if records.punctuation is None:
            return None
        mask = np.asarray(pc.is_valid(records.punctuation).to_numpy(zero_copy_only=False)).copy()
        mask[list(records.punctuation_wrong)] = True
        return mask if mask.any() else None

    def _reasons(
        self, records: Records, punctual: np.ndarray | None, late: dict[int, str]
    ) -> dict[int, str]:
        reasons = dict(records.broken)
        for i, why in late.items():
            reasons.setdefault(i, f"_at {why}" if why == "is missing" else f"_at: {why}")
        if punctual is not None and self.progress is None:
            for i in np.flatnonzero(punctual).tolist():
                reasons.setdefault(i, f"a punctuation, but {self.stream} declares no progress")
        for i, why in records.punctuation_wrong.items():
            reasons.setdefault(i, f"_punctuation: {why}")
        for name, wrong in zip(self.schema.names, records.wrong, strict=False):
            for i, why in wrong.items():
                if punctual is None or not punctual[i] or name in self.by:
                    reasons.setdefault(i, f"{name}: {why}")
        return reasons

    def _punctuations(
        self, records: Records, mask: np.ndarray, rank: np.ndarray
    ) -> tuple[Punctuation, ...]:
        where = np.flatnonzero(mask)
        if records.punctuation is None or not len(where):
            return ()
        values = records.punctuation.take(pa.array(where)).to_pylist()
        groups = [records.columns[k].take(pa.array(where)).to_pylist() for k in self._group]
        keys = zip(*groups, strict=True) if groups else ((),) * len(where)
        return tuple(
            Punctuation(int(p), value, tuple(group))
            for p, value, group in zip(rank[where], values, keys, strict=True)
        )


def cut(row: str) -> str:
    """A row as a dead letter keeps it."""
    return row if len(row) <= ROW_CHARS else row[:ROW_CHARS]
