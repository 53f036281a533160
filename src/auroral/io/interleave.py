"""Several sources in one order of arrival; SPEC §2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from auroral.errors import UsageError
from auroral.io.chunk import Chunk
from auroral.io.files import FileSource
from auroral.io.source import Source


@dataclass(frozen=True)
class Part:
    """One source's share of a train; `order` are its rows' places in the train, 0..n-1."""

    stream: str
    chunk: Chunk
    order: np.ndarray


class _Head:
    """A source and the chunk of it that is being taken."""

    def __init__(self, source: Source):
        self.source = source
        self.chunk: Chunk | None = None
        self.at = 0
        self.offset: Any = None

    @property
    def left(self) -> int:
        return 0 if self.chunk is None else self.chunk.count - self.at

    @property
    def at_us(self) -> np.ndarray:
        assert self.chunk is not None
        assert self.chunk.at_us is not None
        # A live source may go back in time; its own order still holds.
        return np.asarray(np.maximum.accumulate(self.chunk.at_us[self.at :]))

    def take(self, count: int) -> Chunk:
        assert self.chunk is not None
        stop = self.at + count
        part = self.chunk.slice(self.at, stop)
        self.at = stop
        if stop >= self.chunk.count:
            self.chunk = None
        self.offset = part.offset
        return part


class Interleaver:
    """Merges sources by (`_at`, source, place in it), or takes a row from each in turn.

    What comes, and in which order, does not depend on `limit` or on how sources cut their chunks,
    as long as they are files; a source that has nothing right now is passed over. A train holds
    at most one part per source and may be shorter than `limit`; parts without rows carry dead
    letters.
    """

    def __init__(self, sources: Sequence[Source], chunk_rows: int = 65_536):
        self._heads = [_Head(source) for source in sources]
        self._turn = 0
        self._timed: dict[int, bool] = {}
        self._chunk_rows = chunk_rows

    def next(self, limit: int) -> list[Part]:
        """The next train of at most `limit` rows; empty if there is nothing now."""
        empty = self._fill()
        if empty:
            return [Part(h.source.stream, h.take(0), np.empty(0, np.int64)) for h in empty]
        active = [i for i, head in enumerate(self._heads) if head.left]
        if not active:
            return []
        return (
            self._by_arrival(active, limit)
            if self._timed[active[0]]
            else self._in_turn(active, limit)
        )

    @property
    def exhausted(self) -> bool:
        return all(head.chunk is None and head.source.exhausted for head in self._heads)

    @property
    def offset(self) -> Any:
        """Where to `seek` to go on after the trains taken so far; JSON."""
        order = [head.source.stream for head in self._heads]
        return {
            "turn": self._turn,
            "order": order,
            "sources": {head.source.stream: head.offset for head in self._heads},
            "endings": {file.stream: file.ending for file in self._files()},
        }

    def _files(self) -> list[FileSource]:
        """The files of which everything has been taken, or nothing yet."""
        heads = [head for head in self._heads if head.chunk is None]
        return [head.source for head in heads if isinstance(head.source, FileSource)]

    def seek(self, offset: Any) -> None:
        """Put every source, and whose turn it is, where a run before had come to."""
        order = [head.source.stream for head in self._heads]
        if order != offset["order"]:
            raise UsageError(
                "SOURCE_CHANGED",
                f"the run before read {', '.join(offset['order'])}, in this order;"
                f" now {', '.join(order)}",
                hint="give the same inputs in the same order, or use another state directory",
            )
        self._turn = offset["turn"]
        for file in self._files():
            ending = offset.get("endings", {}).get(file.stream)
            if ending is not None:
                file.require_ending(ending)
        for head in self._heads:
            head.offset = offset["sources"][head.source.stream]
            if head.offset is not None:
                head.source.seek(head.offset)

    def close(self) -> None:
        for head in self._heads:
            head.source.close()

    def _fill(self) -> list[_Head]:
        """Have rows of every source that has any; returns those with dead letters only."""
        empty = []
        for i, head in enumerate(self._heads):
            if head.chunk is None and not head.source.exhausted:
                head.chunk, head.at = head.source.poll(self._chunk_rows), 0
                if head.chunk is not None and head.chunk.count:
                    self._timed[i] = head.chunk.at_us is not None
            if head.chunk is not None and not head.chunk.count:
                empty.append(head)
        if len(set(self._timed.values())) > 1:
            self._mixed()
        return empty

    def _mixed(self) -> None:
        names = [head.source.stream for head in self._heads]
        timed = ", ".join(names[i] for i in sorted(self._timed) if self._timed[i])
        others = ", ".join(names[i] for i in sorted(self._timed) if not self._timed[i])
        raise UsageError(
            "MIXED_ARRIVAL",
            f"either all inputs carry _at or none: {timed} do, {others} do not",
            hint="add _at to all of them or take it away",
        )

    def _in_turn(self, active: list[int], limit: int) -> list[Part]:
        """Whole rounds while every active source has rows, then part of one."""
        first = next((k for k, i in enumerate(active) if i >= self._turn), 0)
        active = active[first:] + active[:first]
        width = len(active)
        rounds = min(self._heads[i].left for i in active)
        total = min(limit, rounds * width)
        whole, rest = divmod(total, width)
        parts = []
        for k, i in enumerate(active):
            count = whole + (k < rest)
            if count:
                head = self._heads[i]
                order = np.arange(count, dtype=np.int64) * width + k
                parts.append(Part(head.source.stream, head.take(count), order))
        last = active[(total - 1) % width]
        self._turn = (last + 1) % len(self._heads)
        return parts

    def _by_arrival(self, active: list[int], limit: int) -> list[Part]:
        """Rows no later than what any source that goes on may still bring, merged."""
        times = [self._heads[i].at_us for i in active]
        counts = [len(t) for t in times]
        for bound, i in ((t[-1], i) for t, i in zip(times, active, strict=True)):
            if self._heads[i].source.exhausted:
                continue
            for k, j in enumerate(active):
                if j != i:
                    side: Literal["left", "right"] = "right" if j < i else "left"
                    counts[k] = min(counts[k], int(np.searchsorted(times[k], bound, side)))
        counts = [min(count, limit) for count in counts]
        at = np.concatenate([t[:n] for t, n in zip(times, counts, strict=True)])
        owner = np.repeat(np.arange(len(active)), counts)
        # Stable, and sources are in order: equal times keep source order, then file order.
        order = np.argsort(at, kind="stable")[:limit]
        taken = owner[order]
        parts = []
        for k, i in enumerate(active):
            places = np.flatnonzero(taken == k)
            if len(places):
                head = self._heads[i]
                parts.append(Part(head.source.stream, head.take(len(places)), places))
        return parts
