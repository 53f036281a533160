"""A topic as a source: every partition is an origin with a mark of its own.

Partitions are assigned, not subscribed, and no offset is committed to the broker: how far each
partition was read is the source's position, which becomes true with the tuples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.io.chunk import Chunk, DeadLetter, Origins, RecordPositions, Standing, of_events
from auroral.io.kafka.client import KafkaClient, KafkaSourceError, PolledMessages
from auroral.io.kafka.decode import Decoder
from auroral.io.kafka.merge import Merge, MessageBatch, ReleasedMessages
from auroral.io.kafka.options import KafkaOptions
from auroral.io.readers.assemble import Assembler, RecordPlace
from auroral.network.types import Schema
from auroral.progress.origins import ARRIVED, OPENED
from auroral.progress.values import column_marks

_READ_S = 0.05
_FINITE_READ_S = 0.5
_PATIENCE_S = 2.0
"""How long others wait for a partition from which neither a message nor its end comes."""
_DISCOVER_S = 10.0
_MOST_READ = 50_000
_MOST_HELD = 200_000
"""A partition that is so many messages ahead of the others is not read for a while."""


@dataclass(frozen=True)
class PartitionMarks(RecordPositions):
    """Positions of a chunk: `base` is the position before it."""

    partitions: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))
    offsets: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def position(self) -> Any:
        """The next offset of each partition after `end` records."""
        found = dict(self.base["partitions"])
        passed = self.partitions[: self.end]
        for partition in np.unique(passed).tolist():
            last = np.flatnonzero(passed == partition)[-1]
            found[str(partition)] = int(self.offsets[last]) + 1
        return {"topic": self.base["topic"], "partitions": found}


class KafkaSource:
    """The messages of a topic, those of all partitions in one fair order."""

    partitioned = True

    def __init__(
        self,
        stream: str,
        options: KafkaOptions,
        schema: Schema,
        *,
        progress_on: str | None = None,
        by: Sequence[str] = (),
        now_s: Callable[[], float] = time.monotonic,
        connect: Callable[[str, KafkaOptions], KafkaClient] = KafkaClient,
    ):
        self.stream = stream
        self._options = options
        self._assembler = Assembler(stream, schema, progress_on, by)
        self._decoder = Decoder(stream, schema, options, progress_on=progress_on, by=by)
        self._now_s = now_s
        self._connect = connect
        self._client: KafkaClient | None = None
        self._position: Any = {"topic": options.topic, "partitions": {}}
        """Where to go on after the chunks that were given."""
        self._resumed = False
        self._ends: dict[int, int] = {}
        """Where partitions end for a source that is finite."""
        self._done: set[int] = set()
        self._opened: list[int] = []
        """Partitions of which the stream is still to be told."""
        self._merge = Merge()
        self._heard_s: dict[int, float] = {}
        """When a message of a partition came last, or it was opened."""
        self._resting: set[int] = set()
        self._paused: set[int] = set()
        self._discovered_s = 0.0
        self._closed = False

    # ── as a source ──

    def poll(self, limit: int) -> Chunk | None:
        """The next messages, or word of partitions that are new or idle."""
        if self._closed:
            return None
        client = self._client or self._open()
        self._discover(client)
        if self._opened:
            opened, self._opened = self._opened, []
            return self._say(opened, OPENED)
        chunk = self._released(limit)
        while chunk is None and not self.exhausted:
            read = client.read(_MOST_READ, _FINITE_READ_S if self.finite else _READ_S)
            self._take(read)
            chunk = self._released(limit)
            if not self.finite:
                break
        return chunk

    @property
    def finite(self) -> bool:
        return self._options.until is not None

    @property
    def exhausted(self) -> bool:
        if self._closed:
            return True
        if not self.finite or self._client is None or self._opened:
            return False
        return self._done >= self._ends.keys() and self._merge.is_empty

    def seek(self, offset: Any) -> None:
        if offset["topic"] != self._options.topic:
            problem = f"the run before read the topic {offset['topic']}"
            raise KafkaSourceError.of(self.stream, self._options, problem)
        self._position = offset
        self._resumed = True

    def retryable(self, error: Exception) -> bool:
        """Whether the broker may answer later."""
        return isinstance(error, KafkaSourceError) and error.retryable

    def close(self) -> None:
        self._closed = True
        if self._client is not None:
            self._client.close()
            self._client = None

    # ── partitions ──

    def _open(self) -> KafkaClient:
        client, position = self._connect(self.stream, self._options), self._position
        try:
            found = client.partitions()
            known = self._read()
            client.require(known, found)
            for partition in found:
                self._assign(client, partition, known.get(partition))
        except BaseException:
            # The next attempt begins as this one did.
            client.close()
            self._position, self._opened, self._merge = position, [], Merge()
            self._ends, self._done = {}, set()
            raise
        self._client = client
        self._discovered_s = self._now_s()
        return client

    def _read(self) -> dict[int, int]:
        """The next offset of each partition."""
        return {int(p): offset for p, offset in self._position["partitions"].items()}

    def _assign(self, client: KafkaClient, partition: int, offset: int | None) -> None:
        """Read a partition: on where it was left, or from where it is to start."""
        low, high = client.bounds(partition)
        if offset is None:
            # A partition that is added later is read from its beginning, or some would be missing.
            added = self._resumed or self._client is not None
            offset = low if added or self._options.starting == "earliest" else high
            self._opened.append(partition)
        client.require_offset(partition, offset, low, high)
        partitions = {**self._position["partitions"], str(partition): offset}
        self._position = {**self._position, "partitions": partitions}
        self._heard_s[partition] = self._now_s()
        self._merge.behind.add(partition)
        if self.finite:
            self._ends[partition] = high
            self._finish(partition, offset)
        if partition not in self._done:
            client.assign(partition, offset)

    def _finish(self, partition: int, offset: int) -> None:
        """Note that a finite source has read all of a partition that it is to read."""
        if partition not in self._done and offset >= self._ends[partition]:
            self._done.add(partition)
            self._merge.rest(partition)
            if self._client is not None:
                self._client.pause(partition)

    def _discover(self, client: KafkaClient) -> None:
        """Look for partitions that were added."""
        if self.finite or self._now_s() - self._discovered_s < _DISCOVER_S:
            return
        self._discovered_s = self._now_s()
        found = client.partitions()
        client.require(self._read(), found)
        for partition in found:
            if partition not in self._read():
                self._assign(client, partition, None)

    # ── messages ──

    def _take(self, read: PolledMessages) -> None:
        """Decode what was read, and note where partitions stand."""
        messages = read.messages
        if self.finite:
            messages = [m for m in messages if m.offset() < self._ends[m.partition()]]
        now_s = self._now_s()
        if messages:
            partitions = np.array([m.partition() for m in messages], np.int32)
            offsets = np.array([m.offset() for m in messages], np.int64)
            self._merge.add(self._batch(messages, partitions, offsets))
            for partition in np.unique(partitions).tolist():
                self._heard_s[partition] = now_s
                self._resting.discard(partition)
                self._merge.behind.add(partition)
        if self.finite:
            last = {m.partition(): m.offset() for m in read.messages}
            for partition, offset in last.items():
                self._finish(partition, offset + 1)
        for partition in read.ends:
            self._merge.caught_up(partition)
            if self.finite:
                self._finish(partition, self._ends[partition])
        self._let_rest(now_s)
        self._balance()

    def _batch(
        self, messages: list[Any], partitions: np.ndarray, offsets: np.ndarray
    ) -> MessageBatch:
        records = self._decoder.decode(messages)
        progress = self._assembler.progress
        if progress is not None:
            place = self._assembler.schema.names.index(progress.name)
            values, known = column_marks(pa.chunked_array([records.columns[place]]))
            keys = np.where(known, values, np.nan).astype(np.float64)
            keys[list(_faulty(records))] = np.nan
        else:
            keys = np.array([m.timestamp()[1] for m in messages], np.float64)
        records.sources = messages
        return MessageBatch(records, partitions, offsets, keys)

    def _let_rest(self, now_s: float) -> None:
        """Stop waiting for partitions that are silent."""
        for partition, heard_s in self._heard_s.items():
            silent_s = now_s - heard_s
            if partition in self._merge.behind:
                if silent_s > _PATIENCE_S and not self._merge.held(partition) and not self.finite:
                    self._merge.caught_up(partition)
                continue
            idle_s = self._options.idle_s
            if idle_s is not None and silent_s >= idle_s and partition not in self._resting:
                if partition not in self._done:
                    self._merge.rest(partition)
                self._resting.add(partition)

    def _balance(self) -> None:
        """Read no more of partitions that are far ahead, until the others have followed."""
        assert self._client is not None
        for partition in {*self._merge.behind, *self._paused} - self._done:
            held = self._merge.held(partition)
            if partition in self._paused and held < _MOST_HELD // 2:
                self._paused.discard(partition)
                self._client.resume(partition)
            elif partition not in self._paused and held > _MOST_HELD:
                self._paused.add(partition)
                self._client.pause(partition)

    # ── chunks ──

    def _released(self, limit: int) -> Chunk | None:
        released = self._merge.next(limit)
        if released is None:
            return None
        if released.records is None:
            return self._say(released.partitions.tolist(), released.event)
        return self._chunk(released)

    def _say(self, partitions: Sequence[int], event: int) -> Chunk:
        names = [self._name(partition) for partition in partitions]
        marks = Standing.at(self._position, len(names))
        return of_events(self._assembler.arrow, names, event, marks)

    def _name(self, partition: int) -> str:
        return f"{self._options.topic}/{partition}"

    def _chunk(self, released: ReleasedMessages) -> Chunk:
        assert released.records is not None
        records, partitions, offsets = released.records, released.partitions, released.offsets
        messages = records.sources
        place = RecordPlace("", lambda _: None, lambda i: _shown(messages[i]))
        plain = self._assembler.chunk(records, place, None)
        marks = PartitionMarks(
            self._position,
            plain.offsets.passed,
            plain.offsets.end,
            plain.offsets.dead,
            partitions,
            offsets,
        )
        self._position = marks.position()
        known, codes = np.unique(partitions[plain.offsets.passed - 1], return_inverse=True)
        origins = Origins(
            tuple(self._name(p) for p in known.tolist()),
            codes.astype(np.int32),
            np.full(plain.count, ARRIVED, np.int8),
        )
        dead = tuple(
            self._placed(letter, partitions[at - 1], offsets[at - 1])
            for letter, at in zip(plain.dead, plain.offsets.dead.tolist(), strict=True)
        )
        return replace(plain, offsets=marks, origins=origins, dead=dead)

    def _placed(self, letter: DeadLetter, partition: int, offset: int) -> DeadLetter:
        place = f"topic {self._options.topic}, partition {partition}, offset {offset}"
        return replace(letter, place=place)


def _faulty(records: Any) -> set[int]:
    return {i for reasons in (records.broken, *records.wrong) for i in reasons}


def _shown(message: Any) -> str:
    """A message's value as a dead letter shows it."""
    value = message.value()
    return "" if value is None else value.decode(errors="backslashreplace")
