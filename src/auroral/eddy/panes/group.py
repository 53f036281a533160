"""Queries that share panes, and the classes of tuples that satisfy the same ones of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from math import gcd
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.continuous.sharing.aggregate_reading import AggregateShape, ReadAggregate, SharedCall
from auroral.eddy.lineage import Lineage
from auroral.kernels.grouping import Ids, group_ids

if TYPE_CHECKING:
    from auroral.eddy.registered import RegisteredQuery

QueryIds = npt.NDArray[np.int32]


@dataclass(frozen=True)
class AggregateGroup:
    """Aggregates over one arc, one attribute and one set of keys; `name` is their kind of lineage.

    An id is never reused: the second query would get what was counted for the first.
    """

    name: str
    shape: AggregateShape
    calls: tuple[SharedCall, ...]
    """All that any of the queries computes."""
    windows: Mapping[int, tuple[int, int]]
    """Size and advance of each query's windows, in units of marks."""
    since: Mapping[int, int] = field(default_factory=dict)
    """The moment from which a query counts, if not from the first."""

    @staticmethod
    def of(name: str, entries: Iterable[RegisteredQuery]) -> AggregateGroup:
        """The group of registered queries of one shape."""
        calls: dict[SharedCall, None] = {}
        windows: dict[int, tuple[int, int]] = {}
        since: dict[int, int] = {}
        shape: AggregateShape | None = None
        for entry in entries:
            assert isinstance(entry.read, ReadAggregate)
            shape = entry.read.shape
            calls.update(dict.fromkeys(entry.read.calls))
            for number, query in enumerate(entry.ids.tolist()):
                if number not in entry.gone:
                    windows[query] = (entry.read.size, entry.read.advance)
                    since[query] = entry.since
        assert shape is not None
        ordered = tuple(sorted(calls, key=lambda call: call.name))
        return AggregateGroup(name, shape, ordered, windows, since)

    @cached_property
    def queries(self) -> PaneQueries:
        return PaneQueries.of(self)


@dataclass(frozen=True)
class PaneQueries:
    """The queries of a group, ascending by id; `window` numbers the different windows they have."""

    ids: QueryIds
    window: Ids
    since: Ids
    sizes: Ids
    advances: Ids
    width: int
    """Every window of theirs starts and ends at a multiple of it."""

    @staticmethod
    def of(group: AggregateGroup) -> PaneQueries:
        listed = sorted(group.windows)
        windows = dict.fromkeys(group.windows[query] for query in listed)
        number = {window: at for at, window in enumerate(windows)}
        lengths = np.array([*windows], np.int64).reshape(-1, 2)
        return PaneQueries(
            np.array(listed, np.int32),
            np.array([number[group.windows[query]] for query in listed], np.int64),
            np.array([group.since.get(query, 0) for query in listed], np.int64),
            lengths[:, 0],
            lengths[:, 1],
            reduce(gcd, lengths.ravel().tolist(), 0) or 1,
        )

    def places(self, ids: QueryIds) -> Ids:
        """The position of each id among the queries; -1 if there is no such query (any more)."""
        if not len(self.ids):
            return np.full(len(ids), -1, np.int64)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, at, -1)


@dataclass(frozen=True)
class Classes:
    """Sets of queries: ids[offsets[c] : offsets[c + 1]] are those of class c, ascending."""

    offsets: Ids
    ids: QueryIds

    @staticmethod
    def stored(lists: pa.Array) -> Classes:
        """From a column of lists."""
        ends = lists.offsets.to_numpy().astype(np.int64)
        return Classes(ends - ends[0], lists.flatten().to_numpy())

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def owner(self) -> Ids:
        """The class of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def column(self) -> pa.Array:
        return pa.ListArray.from_arrays(pa.array(self.offsets.astype(np.int32)), pa.array(self.ids))

    def where(self, kept: npt.NDArray[np.bool_]) -> Classes:
        """The classes without some of their entries."""
        sizes = np.bincount(self.owner[kept], minlength=len(self))
        return Classes(_offsets(sizes), self.ids[kept])

    def take(self, index: Ids) -> Classes:
        sizes = np.diff(self.offsets)[index]
        offsets = _offsets(sizes)
        return Classes(offsets, self.ids[spread(self.offsets[index], sizes)])

    def then(self, more: Classes) -> Classes:
        offsets = np.concatenate([self.offsets, more.offsets[1:] + self.offsets[-1]])
        return Classes(offsets, np.concatenate([self.ids, more.ids]))

    def asked(self, number: Ids, queries: PaneQueries) -> tuple[Ids, Ids]:
        """Rows of these classes, repeated for each kind of window that their queries have."""
        kinds = len(queries.sizes)
        pairs = np.unique(self.owner * kinds + queries.window[queries.places(self.ids)])
        bounds = np.searchsorted(pairs, np.arange(len(self) + 1) * kinds)
        many = np.diff(bounds)[number]
        window = pairs[spread(bounds[:-1][number], many)] % max(kinds, 1)
        return np.repeat(np.arange(len(number)), many), window

    def numbered(self) -> tuple[Ids, Ids]:
        """Numbers, the same for equal sets, by first appearance; and where each appears first."""
        return group_ids([_bytes(self.offsets, self.ids)], len(self))


def classified(lineage: Lineage, seq: Ids, queries: PaneQueries) -> tuple[Ids, Classes]:
    """The class of each tuple, among queries active at its moment; -1 if it satisfies none."""
    columns = [pa.array(np.searchsorted(np.unique(queries.since), seq, side="right"))]
    for block in lineage.blocks:
        words = np.ascontiguousarray(block.words)
        columns += [pa.array(words[:, at]) for at in range(words.shape[1])]
    if len(lineage.ids):
        columns.append(_bytes(lineage.offsets, lineage.ids))
    number, first = group_ids(columns, lineage.rows)
    found = Classes(*lineage.take(first).lists())
    place = queries.places(found.ids)
    counts = place >= 0
    if len(queries.ids):
        counts &= queries.since[place] <= seq[first][found.owner]
    found = found.where(counts)
    same, first = found.numbered()
    some = np.diff(found.offsets)[first] > 0
    final = np.where(some, np.cumsum(some) - 1, -1)
    return final[same][number], found.take(first[some])


def _bytes(offsets: Ids, ids: QueryIds) -> pa.Array:
    """Lists of ids as byte strings."""
    buffers = [None, pa.py_buffer(offsets * 4), pa.py_buffer(np.ascontiguousarray(ids))]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _offsets(sizes: Ids) -> Ids:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def spread(starts: Ids, sizes: Ids) -> Ids:
    """start, start + 1, … for each start, as many as its size."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - ends + sizes, sizes) + np.arange(total)
