"""Fair arrival: the messages of several partitions in one order that no cut of batches changes.

Each message has a key, which never falls within its partition: the greatest value so far of the
field that progresses, or of the message's time. Messages go out in order of (key, partition,
offset). A message waits while a partition from which more can be read stands below it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from auroral.io.readers.assemble import Records
from auroral.progress.origins import ARRIVED, IDLE

LEAST = -np.inf


@dataclass(frozen=True)
class MessageBatch:
    """Messages as read, decoded; those of one partition are in order of their offsets."""

    records: Records
    partitions: np.ndarray
    """int32, of each message."""
    offsets: np.ndarray
    """int64, of each message."""
    keys: np.ndarray
    """float64, of each message; NaN if it has none."""


@dataclass(frozen=True)
class ReleasedMessages:
    """What goes out next: messages, or word of partitions alone."""

    records: Records | None
    partitions: np.ndarray
    offsets: np.ndarray
    event: int = ARRIVED


@dataclass
class Merge:
    """Holds messages back until their turn comes.

    >>> def batch(partition, *keys):
    ...     records = Records(len(keys), [pa.array(keys)])
    ...     n = np.arange(len(keys))
    ...     return MessageBatch(records, np.full(len(keys), partition), n, np.array(keys, float))
    >>> merge = Merge({0, 1})
    >>> merge.add(batch(0, 5, 9))
    >>> merge.next(10) is None
    True
    >>> merge.add(batch(1, 6, 7))
    >>> merge.next(10).records.columns[0].to_pylist()
    [5, 6, 7]
    >>> merge.caught_up(1)
    >>> merge.next(10).records.columns[0].to_pylist()
    [9]
    """

    behind: set[int] = field(default_factory=set)
    """Partitions from which more can be read: others wait for them."""
    _held: MessageBatch | None = None
    _key: dict[int, float] = field(default_factory=dict)
    """Where each partition stands: the key of its last message.

    After a restart it is not known. That changes no order: whatever has not gone out yet is not
    below it, so a smaller key goes out next as well.
    """
    _resting: dict[int, float] = field(default_factory=dict)
    """Partitions of which is to be said that they rest, and where they stood."""

    def add(self, batch: MessageBatch) -> None:
        """Take messages; keys are made to never fall."""
        keys = batch.keys.copy()
        for partition in np.unique(batch.partitions).tolist():
            own = np.flatnonzero(batch.partitions == partition)
            before = self._key.get(partition, LEAST)
            known = np.where(np.isnan(keys[own]), LEAST, keys[own])
            keys[own] = np.maximum(np.maximum.accumulate(known), before)
            self._key[partition] = float(keys[own[-1]])
        fresh = MessageBatch(batch.records, batch.partitions, batch.offsets, keys)
        self._held = fresh if self._held is None else _joined(self._held, fresh)

    def caught_up(self, partition: int) -> None:
        """Nothing more can be read from a partition now: nobody waits for it."""
        self.behind.discard(partition)

    def rest(self, partition: int) -> None:
        """Say that a partition rests, after all its messages."""
        self.behind.discard(partition)
        self._resting[partition] = self._key.get(partition, LEAST)

    @property
    def is_empty(self) -> bool:
        return self._held is None and not self._resting

    def held(self, partition: int) -> int:
        """How many messages of a partition wait."""
        return 0 if self._held is None else int((self._held.partitions == partition).sum())

    def next(self, limit: int) -> ReleasedMessages | None:
        """What goes out next, at most `limit` messages; None if all wait."""
        order = self._order()
        resting = self._due(order)
        if resting is not None and not len(order):
            return resting
        if not len(order):
            return None
        assert self._held is not None
        order = order[:limit]
        released = ReleasedMessages(
            self._held.records.take(order),
            self._held.partitions[order],
            self._held.offsets[order],
        )
        rest = np.ones(len(self._held.keys), bool)
        rest[order] = False
        left = np.flatnonzero(rest)
        self._held = _some(self._held, left) if len(left) else None
        return released

    def _order(self) -> np.ndarray:
        """The messages that wait for no partition, and precede who is to be said to rest."""
        if self._held is None:
            return np.empty(0, np.int64)
        keys, partitions = self._held.keys, self._held.partitions
        free = np.ones(len(keys), bool)
        for other in (*self.behind, *self._resting):
            at = self._key.get(other, LEAST)
            before = (keys < at) | ((keys == at) & (partitions < other))
            free &= before | (partitions == other)
        chosen = np.flatnonzero(free)
        # By key, then partition; stable, so that offsets stay in order.
        order: np.ndarray = chosen[np.lexsort((partitions[chosen], keys[chosen]))]
        return order

    def _due(self, order: np.ndarray) -> ReleasedMessages | None:
        """The partitions that rest, once nothing goes out before; one at a time, in order."""
        if not self._resting or len(order):
            return None
        partition = min(self._resting, key=lambda p: (self._resting[p], p))
        for other in self.behind:
            at = self._key.get(other, LEAST)
            if (at, other) <= (self._resting[partition], partition):
                return None
        del self._resting[partition]
        return ReleasedMessages(None, np.array([partition], np.int32), np.empty(0, np.int64), IDLE)


def _some(batch: MessageBatch, index: np.ndarray) -> MessageBatch:
    return MessageBatch(
        batch.records.take(index),
        batch.partitions[index],
        batch.offsets[index],
        batch.keys[index],
    )


def _joined(one: MessageBatch, other: MessageBatch) -> MessageBatch:
    return MessageBatch(
        joined(one.records, other.records),
        np.concatenate([one.partitions, other.partitions]),
        np.concatenate([one.offsets, other.offsets]),
        np.concatenate([one.keys, other.keys]),
    )


def joined(one: Records, other: Records) -> Records:
    """Records after others."""
    count = one.count

    def both(a: dict[int, str], b: dict[int, str]) -> dict[int, str]:
        return {**a, **{i + count: why for i, why in b.items()}}

    points = None
    if one.punctuation is not None or other.punctuation is not None:
        known = one.punctuation if one.punctuation is not None else other.punctuation
        assert known is not None
        points = _concat(
            *(
                pa.nulls(part.count, known.type) if part.punctuation is None else part.punctuation
                for part in (one, other)
            )
        )
    return Records(
        count + other.count,
        [_concat(a, b) for a, b in zip(one.columns, other.columns, strict=True)],
        [both(a, b) for a, b in zip(one.wrong, other.wrong, strict=True)],
        both(one.broken, other.broken),
        punctuation=points,
        punctuation_wrong=both(one.punctuation_wrong, other.punctuation_wrong),
        sources=[*one.sources, *other.sources],
    )


def _concat(*columns: pa.Array | pa.ChunkedArray) -> pa.Array:
    chunks = [
        chunk
        for column in columns
        for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])
    ]
    return pa.concat_arrays(chunks)
