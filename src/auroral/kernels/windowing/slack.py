"""Progress inferred from arrival, as Aurora's slack does: per group, tuple by tuple.

After each tuple the threshold of its group is the (slack + 1)-th largest value seen in it. All
groups are computed at once: their rows lie behind one another, keys are group * span + value, so
a running maximum over all of them never reaches from one group into the next.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from auroral.kernels.grouping import Ids
from auroral.kernels.units import Mask, alike, numbers, stored
from auroral.progress.lowwater import Values

_PASSES = 33
"""Beyond so many passes over all rows, one heap per group is faster."""
_LIMIT = 2**62


@dataclass(frozen=True)
class RankCodes:
    """Small integers, from 1, that compare as some values do; 0 stands for no value."""

    span: int
    base: int = 0
    ranked: Values | None = None

    @staticmethod
    def of(values: Values, groups: int) -> RankCodes:
        """Codes of values such that group * span + code fits 64 bits."""
        if not len(values):
            return RankCodes(1)
        if values.dtype == np.int64:
            least, most = int(values.min()), int(values.max())
            near = least > -_LIMIT and most < _LIMIT
            if near and (most - least + 2) * (groups + 1) < _LIMIT:
                return RankCodes(most - least + 2, least)
        ranked = np.unique(values)
        return RankCodes(len(ranked) + 1, 0, ranked)

    def encode(self, values: Values, above: bool = False) -> Ids:
        """The codes of values; of one not coded, that of the next above; `span` if none is.

        With `above`, the code of the first that is greater.
        """
        if self.ranked is not None:
            side: Literal["left", "right"] = "right" if above else "left"
            return np.searchsorted(self.ranked, values, side=side).astype(np.int64) + 1
        low, high = self.base - above, self.base - above + self.span - 1
        offset = np.clip(values, low, high) - (low - 1)
        return offset.astype(np.int64)

    def decode(self, codes: Ids) -> Values:
        if self.ranked is not None:
            ranked: Values = self.ranked[np.maximum(codes, 1) - 1]
            return ranked
        found: Values = np.maximum(codes, 1) + (self.base - 1)
        return found


def by_group(ids: Ids, groups: int) -> Ids:
    """The order that puts rows of a group behind one another and keeps their arrival."""
    if groups <= 1:
        return np.arange(len(ids))
    low = np.argsort(ids.astype(np.uint16), kind="stable")  # 16 bits: radix sort
    if groups <= 2**16:
        return low
    if groups <= 2**32:
        high = (ids >> 16).astype(np.uint16)[low]
        return low[np.argsort(high, kind="stable")]
    return np.argsort(ids, kind="stable")


@dataclass(frozen=True)
class SlackThresholds:
    """The threshold of each group before and after each of its tuples."""

    codes: RankCodes
    groups: int
    rows: Ids
    """Rows by group; -1 before the first of each group: what was known when the step began."""
    keys: Ids
    """group * span + code of the threshold after each of `rows`; never decreases."""
    where: Ids
    """Where each row is in `rows`."""
    largest: tuple[Ids, ...] = ()
    """Codes of each group's largest values after the step, the largest first."""

    def before(self) -> tuple[Values, Mask]:
        """The threshold before each row, and whether there was one."""
        return self._decoded(self.keys[self.where - 1])

    def after(self) -> tuple[Values, Mask]:
        """The threshold after each row."""
        return self._decoded(self.keys[self.where])

    def last(self) -> tuple[Values, Mask]:
        """The threshold of each group after the step."""
        return self._decoded(self._last_keys())

    def first_known(self) -> Ids:
        """The row after which each group first has a threshold; -1: it had one, or has none."""
        return self._row(np.arange(self.groups), np.arange(self.groups) * self.codes.span + 1)

    def reaching(self, group: Ids, values: Values) -> Ids:
        """The row after which the group's threshold is at or above a value; -1: none."""
        return self._row(group, group * self.codes.span + self.codes.encode(values))

    def _row(self, group: Ids, keys: Ids) -> Ids:
        """The row after which a group's key is at or above one; most groups never get there."""
        found = np.full(len(group), -1, np.int64)
        there = np.flatnonzero(self._last_keys()[group] >= keys)
        found[there] = self.rows[np.searchsorted(self.keys, keys[there])]
        return found

    def _last_keys(self) -> Ids:
        heads = np.flatnonzero(self.rows < 0)
        return self.keys[_ends(heads, len(self.keys)) - 1]

    def _decoded(self, keys: Ids) -> tuple[Values, Mask]:
        codes = keys % self.codes.span
        return self.codes.decode(codes), codes > 0


def thresholds(ids: Ids, values: Values, carried: Carried, slack: int) -> SlackThresholds:
    """The running (slack + 1)-th largest value of each group."""
    groups = carried.groups
    known = alike([values, carried.values])
    codes = RankCodes.of(np.concatenate(known), groups)
    keys, heads, rows, where = _laid_out(ids, groups, codes, codes.encode(known[0]))
    held = carried.matrix(codes.encode(known[1]), slack + 1)
    best = _passes if slack < _PASSES else _heaps
    keys, largest = best(keys, heads, held + np.arange(groups)[:, None] * codes.span)
    bases = np.arange(groups) * codes.span
    return SlackThresholds(codes, groups, rows, keys, where, tuple(x - bases for x in largest))


def counted(ids: Ids, numbers: Ids, groups: int, before: Ids | None = None) -> SlackThresholds:
    """Thresholds of tuple numbers: after tuple k it is k + 1.

    `before` is how many of each group came in earlier steps, if thresholds are asked for then.
    """
    known = numbers if before is None else np.concatenate([numbers, before])
    codes = RankCodes.of(known + 1, groups)
    keys, heads, rows, where = _laid_out(ids, groups, codes, codes.encode(numbers + 1))
    keys[heads] = np.arange(groups) * codes.span
    if before is not None:
        keys[heads] += codes.encode(before + 1)
    return SlackThresholds(codes, groups, rows, keys, where)


def ranks(group: Ids, groups: int) -> Ids:
    """How many rows of its group come before each row."""
    order = by_group(group, groups)
    sorted_groups = group[order]
    rank = np.empty(len(group), np.int64)
    rank[order] = np.arange(len(group)) - np.searchsorted(sorted_groups, sorted_groups)
    return rank


@dataclass(frozen=True)
class Carried:
    """The largest values of each group, from earlier steps: lists behind one another."""

    values: Values
    offsets: Ids

    @property
    def groups(self) -> int:
        return len(self.offsets) - 1

    @staticmethod
    def of(column: pa.Array, groups: int) -> Carried:
        """Read a list column, and add groups that have no values yet."""
        values, _ = numbers(column.flatten())
        offsets = np.zeros(groups + 1, np.int64)
        lengths = np.asarray(column.value_lengths(), np.int64)
        np.cumsum(np.pad(lengths, (0, groups - len(lengths))), out=offsets[1:])
        return Carried(values, offsets)

    def matrix(self, codes: Ids, width: int) -> Ids:
        """Codes of the values, one row per group, 0 where there are fewer."""
        lengths = np.diff(self.offsets)
        found = np.zeros((self.groups, width), np.int64)
        group = np.repeat(np.arange(self.groups), lengths)
        found[group, np.arange(len(codes)) - self.offsets[:-1][group]] = codes
        return found


def carried_lists(running: SlackThresholds, kind: pa.DataType) -> pa.Array:
    """Each group's largest values as a list column of a stored type."""
    codes = np.stack(running.largest, axis=1)
    offsets = np.zeros(running.groups + 1, np.int32)
    np.cumsum((codes > 0).sum(axis=1), out=offsets[1:])
    values = stored(running.codes.decode(codes[codes > 0]), kind)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _laid_out(ids: Ids, groups: int, codes: RankCodes, coded: Ids) -> tuple[Ids, Ids, Ids, Ids]:
    """Keys of rows by group, with a free place before each group; where these are; the rows."""
    order = by_group(ids, groups)
    group = ids[order]
    heads = np.searchsorted(group, np.arange(groups)) + np.arange(groups)
    places = np.arange(len(ids)) + group + 1
    keys = np.empty(len(ids) + groups, np.int64)
    keys[places] = group * codes.span + coded[order]
    rows = np.full(len(keys), -1, np.int64)
    rows[places] = order
    where = np.empty(len(ids), np.int64)
    where[order] = places
    return keys, heads, rows, where


def _ends(heads: Ids, length: int) -> Ids:
    """Where each group ends."""
    return np.append(heads[1:], length)[: len(heads)]


def _passes(keys: Ids, heads: Ids, held: Ids) -> tuple[Ids, list[Ids]]:
    """Each pass finds the running maximum and hands what lost against it to the next."""
    ends = _ends(heads, len(keys)) - 1
    largest = []
    best = keys
    for column in range(held.shape[1]):
        keys[heads] = held[:, column]
        best = np.maximum.accumulate(keys)
        largest.append(best[ends])
        if column + 1 < held.shape[1]:
            np.minimum(keys[1:], best[:-1], out=keys[1:])
    return best, largest


def _heaps(keys: Ids, heads: Ids, held: Ids) -> tuple[Ids, list[Ids]]:
    """The same, with one heap per group."""
    width = held.shape[1]
    largest = np.empty_like(held)
    found = np.empty_like(keys)
    ends = _ends(heads, len(keys))
    for group, (head, end) in enumerate(zip(heads.tolist(), ends.tolist(), strict=True)):
        heap = held[group].tolist()
        heapq.heapify(heap)
        found[head] = heap[0]
        for place, key in enumerate(keys[head + 1 : end].tolist(), head + 1):
            heapq.heappushpop(heap, key)
            found[place] = heap[0]
        largest[group] = sorted(heap, reverse=True)
    return found, [largest[:, column] for column in range(width)]
