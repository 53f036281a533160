"""Several sources in one order of arrival; SPEC §2."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from auroral.errors import UsageError
from auroral.io.chunk import Chunk, Standing, of_events
from auroral.io.sources.attempts import Attempts
from auroral.io.sources.files import FileSource
from auroral.io.sources.named import NamedSource, unwrapped
from auroral.io.sources.source import Source
from auroral.progress.origins import IDLE, OPENED


@dataclass(frozen=True)
class SourceShare:
    """One source's share of a train; `order` are its rows' places in the train, 0..n-1."""

    stream: str
    chunk: Chunk
    order: np.ndarray


class _SourceHead:
    """A source and the chunk of it that is being taken."""

    def __init__(self, source: Source, now: Callable[[], float]):
        self.source = source
        self.attempts = Attempts(source, now)
        self.key = source.key if isinstance(source, NamedSource) else source.stream
        """The name under which its position is kept."""
        self.chunk: Chunk | None = None
        self.at = 0
        self.offset: Any = None
        self._latest_us = np.iinfo(np.int64).min

    @property
    def exhausted(self) -> bool:
        """Whether the source will never give anything again."""
        return self.attempts.ask(lambda: self.source.exhausted, False)

    def poll(self, limit: int) -> None:
        """Take the next chunk, if there is one now."""
        self.chunk = self.attempts.ask(lambda: self.source.poll(limit), None, mends=True)
        self.at = 0

    @property
    def left(self) -> int:
        return 0 if self.chunk is None else self.chunk.count - self.at

    @property
    def at_us(self) -> np.ndarray:
        assert self.chunk is not None
        if self.chunk.at_us is None:  # rows that say something of an origin alone
            return np.full(self.left, self._latest_us)
        # A live source may go back in time; its own order still holds.
        return np.asarray(np.maximum.accumulate(self.chunk.at_us[self.at :]))

    def take(self, count: int) -> Chunk:
        assert self.chunk is not None
        stop = self.at + count
        part = self.chunk.slice(self.at, stop)
        if part.at_us is not None and len(part.at_us):
            self._latest_us = max(self._latest_us, int(part.at_us.max()))
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

    def __init__(
        self,
        sources: Sequence[Source],
        chunk_rows: int = 65_536,
        now: Callable[[], float] = time.monotonic,
    ):
        """`now` in seconds is the clock of retries."""
        self._now = now
        self._heads = [_SourceHead(source, now) for source in sources]
        keys = [head.key for head in self._heads]
        for key in keys:
            if keys.count(key) > 1:
                raise UsageError(
                    "DUPLICATE_NAME",
                    f"two sources are called {key}",
                    hint="several sources of a stream need a name each",
                )
        self._turn = 0
        self._timed: dict[int, bool] = {}
        self._chunk_rows = chunk_rows
        self._parting: list[tuple[str, Chunk]] = []
        """What to tell streams of sources that are no more."""
        self._opened = False
        """Whether the streams that several sources feed know of all of these."""

    def next(self, limit: int) -> list[SourceShare]:
        """The next train of at most `limit` rows; empty if there is nothing now."""
        parting, self._parting = self._parting, []
        if parting:
            return [SourceShare(s, c, np.array([i])) for i, (s, c) in enumerate(parting)]
        opened = self._open()
        if opened:
            return opened
        empty = self._fill()
        if empty:
            return [SourceShare(h.source.stream, h.take(0), np.empty(0, np.int64)) for h in empty]
        if any(head.source.finite and head.attempts.left_s for head in self._heads):
            return []  # the order of what ends does not depend on failures
        active = [i for i, head in enumerate(self._heads) if head.left]
        if not active:
            return []
        return (
            self._by_arrival(active, limit)
            if any(self._timed.values())
            else self._in_turn(active, limit)
        )

    @property
    def finite(self) -> bool:
        """Whether all sources end some time."""
        return all(head.source.finite for head in self._heads)

    @property
    def exhausted(self) -> bool:
        return all(head.chunk is None and head.exhausted for head in self._heads)

    @property
    def pause_s(self) -> float:
        """How long to wait until a source that failed can be asked again; 0 if none has failed."""
        pauses = [left for head in self._heads if (left := head.attempts.left_s)]
        return min(pauses, default=0.0)

    @property
    def retries(self) -> dict[str, int]:
        """How often the sources of each stream were asked again after a failure."""
        found: dict[str, int] = {}
        for head in self._heads:
            stream = head.source.stream
            found[stream] = found.get(stream, 0) + head.attempts.retries
        return found

    @property
    def offset(self) -> Any:
        """Where to `seek` to go on after the trains taken so far; JSON."""
        return {
            "turn": self._turn,
            "order": [head.key for head in self._heads],
            "sources": {head.key: head.offset for head in self._heads},
            "endings": {key: file.ending for key, file in self._files().items()},
            **({"opened": True} if self._opened else {}),
        }

    def _files(self) -> dict[str, FileSource]:
        """The files of which everything has been taken, or nothing yet."""
        heads = [head for head in self._heads if head.chunk is None]
        found = {head.key: unwrapped(head.source) for head in heads}
        return {key: source for key, source in found.items() if isinstance(source, FileSource)}

    def _open(self) -> list[SourceShare]:
        """Tell each stream that several sources feed of all of them, before any brings a row.

        Sources with partitions tell of these themselves.
        """
        if self._opened:
            return []
        parts: list[SourceShare] = []
        for source in (head.source for head in self._heads):
            if isinstance(source, NamedSource) and not source.partitioned:
                chunk = of_events(source.schema, [source.name], OPENED, Standing.at(None))
                parts.append(SourceShare(source.stream, chunk, np.array([len(parts)])))
        self._opened = bool(parts)
        return parts

    def seek(self, offset: Any) -> None:
        """Put every source, and whose turn it is, where a run before had come to."""
        order = [head.key for head in self._heads]
        if order != offset["order"]:
            raise UsageError(
                "SOURCE_CHANGED",
                f"the run before read {', '.join(offset['order'])}, in this order;"
                f" now {', '.join(order)}",
                hint="give the same inputs in the same order, or use another state directory",
            )
        self._turn = offset["turn"]
        self._opened = offset.get("opened", False)
        for key, file in self._files().items():
            ending = offset.get("endings", {}).get(key)
            if ending is not None:
                file.require_ending(ending)
        for head in self._heads:
            head.offset = offset["sources"][head.key]
            if head.offset is not None:
                head.source.seek(head.offset)

    def change(
        self,
        gone: Collection[str],
        fresh: Sequence[Source],
        position: Any | None,
        streams: Collection[str],
    ) -> None:
        """Read no more from some sources, and from others instead.

        `gone` are names of sources, or of streams whose sources all go; `streams` are all there
        are. A source that was read before goes on where `position` says; several sources of a
        stream are told of before a new one brings a row, and a stream does not wait for those that
        are gone.
        """
        leaving = [h for h in self._heads if h.key in gone or h.source.stream in gone]
        staying = [head for head in self._heads if head not in leaving]
        known = {head.key for head in staying}
        coming = [_SourceHead(source, self._now) for source in fresh]
        for head in coming:
            if head.key in known:
                raise UsageError(
                    "DUPLICATE_NAME",
                    f"there is a source {head.key} already",
                    hint="several sources of a stream need a name each",
                )
        for head in leaving:
            source = head.source
            source.close()
            if isinstance(source, NamedSource) and source.stream in streams:
                chunk = of_events(source.schema, [source.name], IDLE, Standing.at(head.offset))
                self._parting.append((source.stream, chunk))
        timed = {head.key: self._timed[i] for i, head in enumerate(self._heads) if i in self._timed}
        self._heads = [*staying, *coming]
        places = {head.key: i for i, head in enumerate(self._heads)}
        self._timed = {places[key]: is_timed for key, is_timed in timed.items() if key in places}
        self._turn = 0
        saved = (position or {}).get("sources", {})
        for head in self._heads:
            if head.key not in known and saved.get(head.key) is not None:
                head.offset = saved[head.key]
                head.source.seek(head.offset)
            elif head.key not in known:
                self._opened = False

    def close(self) -> None:
        for head in self._heads:
            head.source.close()

    def _fill(self) -> list[_SourceHead]:
        """Have rows of every source that has any; returns those with dead letters only."""
        empty = []
        for i, head in enumerate(self._heads):
            if head.chunk is None and not head.exhausted:
                head.poll(self._chunk_rows)
                if head.chunk is not None and head.chunk.carries:
                    self._timed[i] = head.chunk.at_us is not None
            if head.chunk is not None and not head.chunk.count:
                empty.append(head)
        if len(set(self._timed.values())) > 1:
            self._mixed()
        return empty

    def _mixed(self) -> None:
        names = [head.key for head in self._heads]
        timed = ", ".join(names[i] for i in sorted(self._timed) if self._timed[i])
        others = ", ".join(names[i] for i in sorted(self._timed) if not self._timed[i])
        raise UsageError(
            "MIXED_ARRIVAL",
            f"either all inputs carry _at or none: {timed} do, {others} do not",
            hint="add _at to all of them or take it away",
        )

    def _in_turn(self, active: list[int], limit: int) -> list[SourceShare]:
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
                parts.append(SourceShare(head.source.stream, head.take(count), order))
        last = active[(total - 1) % width]
        self._turn = (last + 1) % len(self._heads)
        return parts

    def _by_arrival(self, active: list[int], limit: int) -> list[SourceShare]:
        """Rows no later than what any source that goes on may still bring, merged."""
        times = [self._heads[i].at_us for i in active]
        counts = [len(t) for t in times]
        for bound, i in ((t[-1], i) for t, i in zip(times, active, strict=True)):
            if self._heads[i].exhausted:
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
                parts.append(SourceShare(head.source.stream, head.take(len(places)), places))
        return parts
