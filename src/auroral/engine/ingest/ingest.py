"""Ingest: every arriving tuple gets its moment and a place in its stream's log.

Small batches wait in memory until a train is formed (`seal`), so that a thousand one-tuple
calls make one segment; with a state directory they are in the journal meanwhile. Large batches
become segments at once. The ingest lock makes moments dense and logs complete: whoever holds it
sees every moment before `next_moment` either in a segment or waiting.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.continuous.boxing.gates import running_names
from auroral.engine.ingest.dead_letters import DeadLetters
from auroral.engine.locks import ReentrantLock
from auroral.engine.runtime.clock import LAST_TIME
from auroral.engine.runtime.watermarks import group_key, origins_log
from auroral.errors import UsageError, closest, ended, list_existing, require_name
from auroral.ids import CLOCK_LOG, StreamLogId
from auroral.io.chunk import Chunk, Origins
from auroral.io.open import extra_of
from auroral.io.rows import RowReader
from auroral.io.sources.interleave import SourceShare
from auroral.network.check import CheckedNetwork
from auroral.progress.values import to_mark
from auroral.spark.plans.plan import arc_schema
from auroral.storage import Change, Journal, Store, UnwrittenSegment

LARGE_ROWS = 20_000
"""A batch of this size is written as a segment of its own."""
SEGMENT_ROWS = 1_000_000
_CLOCK_SCHEMA = pa.schema([("_seq", pa.int64()), ("_ts", pa.int64())])
_ORIGINS_SCHEMA = pa.schema([("_seq", pa.int64()), ("origin", pa.int32()), ("event", pa.int8())])

Noted = tuple[int, Any, tuple[Any, ...]]


@dataclass(frozen=True)
class Receipt:
    """What became of a batch: tuples taken, rows that did not fit, the moment of the first."""

    accepted: int
    dead: int
    moment: int | None
    """None if nothing was taken, or the batch was taken before."""


@dataclass(frozen=True)
class _Held:
    """A small batch that waits: its first moment, its tuples, their arrival."""

    first: int
    tuples: pa.Table
    times: Any
    """One time for all, or one for each."""
    stride: int
    """How far the moments of its tuples are apart."""


def _together(held: Sequence[_Held], schema: pa.Schema) -> pa.Table:
    """Batches as one table with hidden columns."""
    tuples = pa.concat_tables([h.tuples for h in held]).combine_chunks()
    counts = [h.tuples.num_rows for h in held]
    moments = np.concatenate(
        [h.first + h.stride * np.arange(n) for h, n in zip(held, counts, strict=True)]
    )
    times = np.concatenate([np.broadcast_to(h.times, n) for h, n in zip(held, counts, strict=True)])
    columns = [pa.array(moments, pa.int64()), pa.array(times, pa.int64()), *tuples.columns]
    return pa.Table.from_arrays(columns, schema=schema)


class Ingest:
    """The way into the input logs."""

    def __init__(
        self,
        checked: CheckedNetwork,
        store: Store,
        dead: DeadLetters,
        now_us: Callable[[], int],
        *,
        with_clock: bool,
        arrival: bool = False,
        after: int = 0,
        arrived: Callable[[int], None] = lambda _moment: None,
        counted: Callable[[str, int], None] = lambda _stream, _tuples: None,
        lock: ReentrantLock | None = None,
    ):
        """Nothing more arrives before the moment `after`.

        `arrived` is told the next moment whenever tuples have come, and `counted` how many have
        come on a stream.
        """
        self._arrived = arrived
        self._counted = counted
        self._store = store
        self._dead = dead
        # When time is what arrivals say, an arrival that says nothing comes at no time at all.
        self._now_us: Callable[[], int] = (lambda: 0) if arrival else now_us
        self._lock = lock or threading.RLock()
        self._closed = False
        self._serve(checked, with_clock=with_clock)
        self._waiting: dict[str, list[_Held]] = {}
        self._clock: list[tuple[Any, Any]] = []
        self.next_moment = self._complete = store.next_moment
        ended = store.manifest.meta("ended")
        self.ended = None if ended is None else int(ended)
        """The moment at which all input ended."""
        self._journal = (
            Journal(store.directory / "journal", power=store.power) if store.durable else None
        )
        self.newest_us = 0
        """When the newest arrival came of those that an earlier run left in the journal."""
        self._replay()
        # A power failure may take what was journalled, and leave a later change of queries.
        self.next_moment = max(self.next_moment, after)
        if not self._waiting:
            self._complete = self.next_moment

    def _serve(self, checked: CheckedNetwork, *, with_clock: bool) -> None:
        """Take tuples of the streams of a network from now on."""
        self._with_clock = with_clock
        self._stride = 2 if with_clock else 1
        """How many moments an arrival takes: the clock's, if it matters, comes before its own."""
        self._logs = running_names(checked.network)
        """The logs of streams, by what users call them; so is everything else here."""
        streams = {name: checked.network.streams[log] for name, log in self._logs.items()}
        self._schemas = {n: s.schema_ for n, s in streams.items()}
        self._arrow = {name: arc_schema(schema) for name, schema in self._schemas.items()}
        self._scales: dict[str, int] = {}
        self._readers: dict[str, RowReader] = {}
        for name, stream in streams.items():
            progress = stream.punctuated
            on = progress.on if progress else None
            self._scales[name] = stream.schema_.field(on).type.scale if on else 0
            self._readers[name] = RowReader(
                name,
                stream.schema_,
                progress_on=on,
                by=progress.by if progress else (),
                extra=extra_of(stream.sources),
            )
        self._marked = {n for n, s in streams.items() if s.progressing}
        """The streams whose progress may depend on where tuples come from."""
        self._origins: dict[str, dict[str, int]] = {
            name: {origin: code for code, origin in enumerate(numbered)}
            for name in self._marked
            if (numbered := self._store.manifest.source(origins_log(self._logs[name]))) is not None
        }
        """The numbers of origins in the logs, by stream and name."""

    # ── the ways in ──

    def enqueue(self, stream: str, rows: Any, position: Any | None = None) -> Receipt:
        """Take a batch from an application; returns what became of it.

        With `position` the batch is durable at once together with it, and a batch whose
        position was taken before is ignored.
        """
        reader = self._reader(stream)
        kept = _as_kept(stream, position)
        chunk = reader.read(rows)
        with self._all_or_nothing():
            if self.ended is not None:
                raise UsageError("INPUT_ENDED", "the input was declared to have ended")
            moment = int(self._next_moments(1)[0]) if chunk.count else None
            if position is not None:
                if self._store.manifest.source(stream) == kept:
                    return Receipt(0, 0, None)
                self._commit(self._placed({stream: chunk}), {stream: position}, chunk.dead)
            elif chunk.dead or chunk.punctuations or chunk.count >= LARGE_ROWS:
                self._commit(self._placed({stream: chunk}), {}, chunk.dead)
            elif chunk.count:
                self._wait(stream, chunk)
        if self._journal:
            self._journal.sync()
        accepted = int(chunk.tuples.num_rows)
        self._counted(stream, accepted)
        return Receipt(accepted, len(chunk.dead), moment)

    def send(self, stream: str, row: Mapping[str, Any]) -> int | None:
        """Take one tuple; returns its moment. One that does not fit is refused."""
        refused = self._reader(stream).read([row]).dead
        if refused:
            raise UsageError("BAD_ROW", refused[0].reason, where=f"stream {stream}")
        return self.enqueue(stream, [row]).moment

    def position(self, stream: str) -> Any | None:
        """The position of the last batch of a stream that was taken with one."""
        self._reader(stream)
        return self._store.manifest.source(stream)

    def source_position(self, name: str) -> Any | None:
        """Where sources that are read together have come to."""
        return self._store.manifest.source(name)

    def feed(self, parts: Sequence[SourceShare], positions: Mapping[str, Any]) -> int:
        """Take what sources gave, with their positions; returns the accepted rows.

        After the end nothing is taken: no window would ever close over it.
        """
        dead = [letter for part in parts for letter in part.chunk.dead]
        with self._all_or_nothing():
            if self.ended is not None:
                return 0
            base = self.next_moment
            fresh: list[UnwrittenSegment] = self._sealed()
            count = sum(part.chunk.count for part in parts)
            self.next_moment = base + self._stride * count
            for stream in dict.fromkeys(part.stream for part in parts):
                own = [part for part in parts if part.stream == stream]
                fresh += self._together(stream, own, base)
            positions = {**positions, **self._named_origins(parts)}
            if self._with_clock:
                self._note_parts(parts, base)
            self._commit([*fresh, *self._clock_segment()], positions, dead)
        for part in parts:
            self._counted(part.stream, int(part.chunk.tuples.num_rows))
        return count

    def tick(self) -> None:
        """Let the clock pass although nothing arrives: a moment of its own."""
        with self._all_or_nothing():
            if self.ended is not None:
                return
            fresh = self._sealed()
            moment = np.array([self.next_moment])
            self._clock.append((moment, np.array([self._now_us()])))
            self.next_moment += 1
            self._commit([*fresh, *self._clock_segment()], {}, ())

    def end(self) -> int:
        """The moment after everything; nothing can be taken any more."""
        with self._all_or_nothing():
            self.seal()
            moment = self.next_moment
            self.next_moment += 1
            self._complete = self.next_moment
            self.ended = moment
            self._store.commit(Change(next_moment=self.next_moment, meta={"ended": str(moment)}))
            return moment

    def seal(self) -> int:
        """Make segments of all that waits; returns the moment before which logs are complete.

        Takes the lock only if something waits, so that a busy producer does not hold up steps.
        """
        if self._waiting or self._clock:
            with self._all_or_nothing():
                if self._waiting or self._clock:
                    self._commit([*self._sealed(), *self._clock_segment()], {}, ())
        return self._complete

    @property
    def ready(self) -> bool:
        """Whether something waits to be sealed."""
        return bool(self._waiting or self._clock)

    @property
    def complete(self) -> int:
        """The moment before which every tuple is in a segment."""
        return self._complete

    @property
    def waiting(self) -> int:
        """Tuples that are in no segment yet."""
        with self._lock:
            return sum(h.tuples.num_rows for held in self._waiting.values() for h in held)

    @contextmanager
    def at_moment(self) -> Iterator[int]:
        """The moment of the next arrival; nothing arrives meanwhile."""
        with self._lock:
            yield self.next_moment

    @contextmanager
    def at_change(self, checked: CheckedNetwork, *, with_clock: bool, ends: bool) -> Iterator[int]:
        """The moment from which on there is another network; it is taken up when all went well.

        With `ends` the moment before it is one of its own, at which the input of boxes ends.
        """
        with self._all_or_nothing():
            if self.ended is not None:
                raise UsageError(
                    "INPUT_ENDED",
                    "the input was declared to have ended: nothing would reach a changed network",
                    hint="use another state directory",
                )
            self.seal()
            if ends:
                self.next_moment += 1
                self._complete = self.next_moment
                self._store.commit(Change(next_moment=self.next_moment))
            yield self.next_moment
            self._serve(checked, with_clock=with_clock)

    def close(self, *, seal: bool) -> None:
        """Take nothing more; what waits becomes segments if `seal`."""
        with self._lock:
            try:
                if seal:
                    self.seal()
            finally:
                self._closed = True
                if self._journal:
                    self._journal.close()

    # ── inside; the lock is held ──

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Hold the lock; if something fails, what waited waits again and no moment is spent."""
        with self._lock:
            if self._closed:
                raise ended()
            waiting = {stream: list(held) for stream, held in self._waiting.items()}
            before = (waiting, list(self._clock), self.next_moment, self._complete)
            try:
                yield
            except BaseException:
                self._waiting, self._clock, self.next_moment, self._complete = before
                raise

    def _reader(self, stream: str) -> RowReader:
        require_name(stream, "a stream")
        if stream not in self._readers:
            raise UsageError(
                "UNKNOWN_STREAM",
                f"there is no stream {stream}; {list_existing(self._readers)}",
                hint=closest(stream, self._readers),
            )
        return self._readers[stream]

    def _wait(self, stream: str, chunk: Chunk) -> None:
        moments = self._next_moments(chunk.count)
        first = int(moments[0])
        times = self._now_us() if chunk.at_us is None else chunk.at_us
        held = _Held(first, chunk.tuples, times, self._stride)
        if self._journal:
            table = _together([held], self._arrow[stream])
            self._journal.append(stream, first, table.to_batches()[0])
        self._waiting.setdefault(stream, []).append(held)
        if self._with_clock:
            self._note_time(moments, chunk)
        self.next_moment += self._stride * chunk.count
        self._arrived(self.next_moment)

    def _together(
        self, stream: str, parts: Sequence[SourceShare], base: int
    ) -> Iterator[UnwrittenSegment]:
        """What the sources of one stream gave, as one segment, and where each row came from."""
        moments = [self._moments(base, part.order) for part in parts]
        made = [self._table(stream, p.chunk, m) for p, m in zip(parts, moments, strict=True)]
        table = made[0][0] if len(made) == 1 else pa.concat_tables([table for table, _ in made])
        punctuations = (
            made[0][1] if len(made) == 1 else tuple(n for _, noted in made for n in noted)
        )
        if len(made) > 1:
            table = table.take(pa.array(np.argsort(table["_seq"].to_numpy(), kind="stable")))
            punctuations = tuple(sorted(punctuations, key=lambda noted: noted[0]))
        if table.num_rows or punctuations:
            yield UnwrittenSegment(self._logs[stream], table, self.next_moment, punctuations)
        told = [(p.chunk.origins, m) for p, m in zip(parts, moments, strict=True)]
        rows = [self._origin_rows(stream, o, m) for o, m in told if o is not None and len(m)]
        if rows and stream in self._marked:
            every = pa.concat_tables(rows).sort_by("_seq")
            yield UnwrittenSegment(origins_log(self._logs[stream]), every, self.next_moment)

    def _origin_rows(self, stream: str, origins: Origins, moments: Any) -> pa.Table:
        numbered = self._origins.get(stream, {})
        self._origins[stream] = numbered = {
            **numbered,
            **{
                n: i
                for i, n in enumerate(
                    (n for n in origins.names if n not in numbered), len(numbered)
                )
            },
        }
        codes = np.array([numbered[name] for name in origins.names], np.int32)[origins.codes]
        columns = [pa.array(moments, pa.int64()), pa.array(codes), pa.array(origins.events)]
        return pa.Table.from_arrays(columns, schema=_ORIGINS_SCHEMA)

    def _named_origins(self, parts: Sequence[SourceShare]) -> dict[str, Any]:
        """The names of the origins of streams, to be kept with what they gave."""
        told = {p.stream for p in parts if p.chunk.origins is not None} & self._origins.keys()
        return {origins_log(self._logs[stream]): list(self._origins[stream]) for stream in told}

    def _next_moments(self, count: int) -> Any:
        """The moments of so many arrivals after all there were."""
        first = self.next_moment + self._stride - 1
        return np.arange(first, first + self._stride * count, self._stride)

    def _moments(self, base: int, order: Any) -> Any:
        """The moments of arrivals by their place, from a moment on."""
        return base + self._stride * order + (self._stride - 1)

    def _placed(self, chunks: Mapping[str, Chunk]) -> list[UnwrittenSegment]:
        """New segments for whole batches, after what waits."""
        fresh = self._sealed()
        for stream, chunk in chunks.items():
            for start in range(0, chunk.count, SEGMENT_ROWS):
                part = chunk.slice(start, start + SEGMENT_ROWS)
                moments = self._next_moments(part.count)
                table, punctuations = self._table(stream, part, moments)
                self.next_moment += self._stride * part.count
                log = self._logs[stream]
                fresh.append(UnwrittenSegment(log, table, self.next_moment, punctuations))
                if self._with_clock:
                    self._note_time(moments, part)
        return [*fresh, *self._clock_segment()]

    def _sealed(self) -> list[UnwrittenSegment]:
        """What waits, as segments to be; they are no longer waiting."""
        fresh = [
            UnwrittenSegment(
                self._logs[stream],
                _together(held, self._arrow[stream]),
                self.next_moment,
            )
            for stream, held in self._waiting.items()
        ]
        self._waiting = {}
        return fresh

    def _commit(
        self, fresh: Sequence[UnwrittenSegment], positions: Mapping[str, Any], dead: Any
    ) -> None:
        change = Change(
            fresh=fresh,
            next_moment=self.next_moment,
            sources=positions,
            counts=_summed(fresh),
            meta={LAST_TIME: str(self._now_us())},
        )
        self._dead.commit(self._store, change, dead)
        self._complete = self.next_moment
        self._arrived(self.next_moment)
        if self._journal:
            self._journal.clear()

    def _table(self, stream: str, chunk: Chunk, moments: Any) -> tuple[pa.Table, tuple[Noted, ...]]:
        """A chunk's tuples with their hidden columns, and its punctuations."""
        chosen = moments if len(chunk.positions) == chunk.count else moments[chunk.positions]
        if chunk.at_us is None:
            times = np.full(len(chosen), self._now_us(), np.int64)
        else:
            times = chunk.at_us[chunk.positions]
        columns = [pa.array(chosen, pa.int64()), pa.array(times), *chunk.tuples.columns]
        scale = self._scales[stream]
        punctuations = tuple(
            (int(moments[p.position]), to_mark(p.value, scale), group_key(p.group))
            for p in chunk.punctuations
        )
        return pa.Table.from_arrays(columns, schema=self._arrow[stream]), punctuations

    def _note_time(self, moments: Any, chunk: Chunk) -> None:
        """The clock moves in the moment before an arrival."""
        if not chunk.count or not chunk.carries:
            return
        if chunk.at_us is None:
            self._clock.append((moments[:1] - 1, np.array([self._now_us()])))
        else:
            changed = np.concatenate([[True], chunk.at_us[1:] != chunk.at_us[:-1]])
            self._clock.append((moments[changed] - 1, chunk.at_us[changed]))

    def _note_parts(self, parts: Sequence[SourceShare], base: int) -> None:
        for part in parts:
            self._note_time(self._moments(base, part.order), part.chunk)

    def _clock_segment(self) -> list[UnwrittenSegment]:
        if not self._clock:
            return []
        moments = np.concatenate([m for m, _ in self._clock])
        times = np.concatenate([t for _, t in self._clock])
        order = np.argsort(moments, kind="stable")
        self._clock = []
        columns = [pa.array(moments[order], pa.int64()), pa.array(times[order], pa.int64())]
        table = pa.Table.from_arrays(columns, schema=_CLOCK_SCHEMA)
        return [UnwrittenSegment(CLOCK_LOG, table, self.next_moment)]

    def _replay(self) -> None:
        """After a crash: what was journalled and is in no segment waits again."""
        if self._journal is None:
            return
        for stream, first, batch in self._journal.entries(self._arrow):
            if first < self._store.next_moment:
                continue
            table = pa.Table.from_batches([batch])
            tuples, times = table.drop_columns(["_seq", "_ts"]), table["_ts"].to_numpy()
            held = _Held(first, tuples, times, self._stride)
            self.newest_us = max(self.newest_us, int(held.times.max()))
            self._waiting.setdefault(stream, []).append(held)
            self.next_moment = max(self.next_moment, int(batch.column(0)[-1].as_py()) + 1)
            if self._with_clock:
                moments, times = batch.column(0).to_numpy(), batch.column(1).to_numpy()
                changed = np.concatenate([[True], times[1:] != times[:-1]])
                self._clock.append((moments[changed] - 1, times[changed]))


def _as_kept(stream: str, position: Any) -> Any:
    """A position as it is found again; NaN would never be found."""
    try:
        return json.loads(json.dumps(position, allow_nan=False))
    except (TypeError, ValueError):
        problem = f"a position is any JSON value, found {position!r}"
        raise UsageError("BAD_CALL", problem, where=stream) from None


def _summed(fresh: Sequence[UnwrittenSegment]) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for batch in fresh:
        log = StreamLogId.parse(batch.log)
        if log.kind != "origins" and batch.log != CLOCK_LOG:
            key = (log.stream, "in")
            counts[key] = counts.get(key, 0) + batch.table.num_rows
    return counts
