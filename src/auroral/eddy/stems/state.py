"""The stored tuples of one arc: segments, each indexed once, that all joins of the arc share.

A state table has the tuples' hidden columns, their numbers of arrival, the fields that joins need
and, for each place of the arc in a join, the lineage. A segment is what one step appended.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.eddy.bitmap import Ids as QueryIds
from auroral.eddy.lineage import Lineage
from auroral.eddy.stems.index import StemIndex, keyed
from auroral.eddy.stems.lineages import aligned, in_words, masked, stacked
from auroral.kernels.grouping import Ids
from auroral.kernels.kernel import Appended
from auroral.kernels.ordering import sub_bytes, whole
from auroral.kernels.stored import in_arrival_order
from auroral.kernels.units import Mask, numbers
from auroral.progress.lowwater import Values

NUMBER, BATCH = "_number", "_batch"
_HIDDEN = ("_seq", "_ts", "_sub", NUMBER)
_IDS, _BITS, _OF = "_ids", "_bits", "_of"
_APPENDS, _MANY = 8, 40
_CACHED = 1 << 28
"""Bytes of segments that a process keeps between steps."""
Keys = tuple[tuple[str, pa.DataType], ...]


class StemSegment:
    """Tuples in order of arrival, and what has been computed from them; immutable."""

    def __init__(
        self,
        table: pa.Table,
        lineages: Mapping[str, Lineage] | None = None,
        *,
        lasting: bool = False,
    ):
        self.table = table
        self.lasting = lasting
        self.rows = table.num_rows
        self._arrays: dict[str, pa.Array] = {}
        self._memory: dict[Hashable, Any] = {}
        self._lineages = lineages
        self.seq: Ids = np.asarray(table["_seq"], np.int64)
        self.number: Ids = np.asarray(table[NUMBER], np.int64)

    def has(self, name: str) -> bool:
        return name in self.table.column_names

    def column(self, name: str) -> pa.Array:
        """A field; NULL if it was not stored."""
        if name not in self._arrays:
            stored = whole(self.table[name]) if self.has(name) else pa.nulls(self.rows)
            self._arrays[name] = stored
        return self._arrays[name]

    def subs(self) -> pa.BinaryArray:
        found: pa.BinaryArray = self._kept("subs", lambda: sub_bytes(self.table))
        return found

    def has_subs(self) -> bool:
        """Whether a tuple shares its moment with others, so that `_sub` tells them apart."""
        found: bool = self._kept(
            "has subs", lambda: bool(pc.max(pc.binary_length(self.subs())).as_py())
        )
        return found

    def on(self, name: str, floats: bool) -> tuple[Values, Mask]:
        """The values of an ordered attribute, and which tuples have one."""

        def read() -> tuple[Values, Mask]:
            values, known = numbers(self.column(name))
            if values.dtype == np.float64:
                known = known & np.isfinite(values)
            return values.astype(np.float64) if floats else values, known

        found: tuple[Values, Mask] = self._kept(("on", name, floats), read)
        return found

    def lineage(self, place: str, since: int = 0) -> Lineage:
        """The lineage of the tuples at a place of a join."""

        def read() -> Lineage:
            lineage = in_words(self._lineage(place))
            return masked(lineage, self.seq >= since) if since else lineage

        found: Lineage = self._kept(("lineage", place, since), read)
        return found

    def lineage_like(self, place: str, since: int, like: tuple[QueryIds, ...]) -> Lineage:
        """The same with bitmaps of those queries, as far as that is worth it."""
        key = ("like", place, since)
        before: Lineage = self._memory.get(key) or self.lineage(place, since)
        self._memory[key] = found = aligned(before, like)
        return found

    def alive(self, place: str, since: int = 0) -> Mask:
        found: Mask = self._kept(
            ("alive", place, since), lambda: self.lineage(place, since).alive()
        )
        return found

    def index(
        self, keys: Keys, on: str | None, floats: bool, wanted: Sequence[pa.Array] = ()
    ) -> StemIndex:
        """The tuples by some fields, then by an attribute or else by their number of arrival.

        If few keys are wanted of a segment that is read once, the index has but their tuples.
        """
        few = bool(wanted) and not self.lasting and 4 * len(wanted[0]) < self.rows

        def build() -> StemIndex:
            columns = [keyed(self.column(name), form) for name, form in keys]
            ranged, known = (self.number, None) if on is None else self.on(on, floats)
            known = np.ones(self.rows, bool) if known is None else known
            if few:
                met = pc.is_in(columns[0], value_set=wanted[0].drop_null())
                known = known & np.asarray(met)
            return StemIndex(columns, ranged, known)

        found: StemIndex = build() if few else self._kept(("index", keys, on, floats), build)
        return found

    def _lineage(self, place: str) -> Lineage:
        if self._lineages is not None:
            return self._lineages.get(place) or Lineage.none(self.rows)
        names = {name: f"{place}/{name}" for name in (_IDS, _BITS, _OF)}
        if not all(map(self.has, names.values())):
            return Lineage.none(self.rows)
        # The ids of the bits are with one row of the segment.
        carried = self.table[names[_OF]].drop_null()
        of = carried[0].as_py() if len(carried) else b""
        columns = [
            self.table[names[_IDS]].cast(pa.list_(pa.int32())),
            self.table[names[_BITS]].cast(pa.binary()),
        ]
        schema = pa.schema([(_IDS, pa.list_(pa.int32())), (_BITS, pa.binary())], {b"ids": of})
        return Lineage.from_arrow(pa.Table.from_arrays(columns, schema=schema))

    def _kept(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._memory:
            self._memory[key] = make()
        return self._memory[key]


class Stem:
    """All tuples of an arc that joins may need: the stored ones, and then the new ones."""

    def __init__(self, stored: Sequence[StemSegment], new: StemSegment):
        self.stored = stored
        self.new = new
        self.segments = [*stored, new]
        sizes = [segment.rows for segment in self.segments]
        self.bases: Ids = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def column(self, name: str, rows: Ids) -> pa.Array:
        """A field of some rows."""
        return self._taken([s.column(name) for s in self.segments], rows, self.type_of(name))

    def type_of(self, name: str) -> pa.DataType:
        """The type of a field as the newest tuples have it."""
        kinds = [s.column(name).type for s in reversed(self.segments) if s.has(name)]
        return next((kind for kind in kinds if not pa.types.is_null(kind)), pa.null())

    def subs(self, rows: Ids) -> pa.BinaryArray:
        return self._taken([segment.subs() for segment in self.segments], rows, pa.binary())

    @property
    def has_subs(self) -> bool:
        return any(segment.has_subs() for segment in self.segments)

    def seq(self, rows: Ids) -> Ids:
        return self._gathered([segment.seq for segment in self.segments], rows)

    def number(self, rows: Ids) -> Ids:
        return self._gathered([segment.number for segment in self.segments], rows)

    def ts(self, rows: Ids) -> Ids:
        return self._gathered([np.asarray(s.column("_ts"), np.int64) for s in self.segments], rows)

    def on(self, name: str, floats: bool, rows: Ids) -> Values:
        return self._gathered([s.on(name, floats)[0] for s in self.segments], rows)

    def _parts(self, rows: Ids) -> list[tuple[int, Ids]]:
        """Segments that have some of the rows, and which of the rows these are."""
        if not len(rows):
            return []
        first, last = np.searchsorted(self.bases, [rows.min(), rows.max()], side="right") - 1
        if first == last:
            return [(int(first), np.arange(len(rows)))]
        owner = np.searchsorted(self.bases, rows, side="right") - 1
        return [(int(n), np.flatnonzero(owner == n)) for n in np.unique(owner)]

    def _gathered(self, arrays: Sequence[Values], rows: Ids) -> Values:
        parts = self._parts(rows)
        if len(parts) == 1:
            return np.asarray(arrays[parts[0][0]][rows - self.bases[parts[0][0]]])
        kinds = [arrays[n].dtype for n, _ in parts]
        made = np.empty(len(rows), object if object in kinds else kinds[0] if kinds else np.int64)
        for n, at in parts:
            made[at] = arrays[n][rows[at] - self.bases[n]]
        return made

    def _taken(self, arrays: Sequence[pa.Array], rows: Ids, kind: pa.DataType) -> pa.Array:
        parts = self._parts(rows)
        if not parts:
            return pa.nulls(0, kind)
        taken = [arrays[n].take(pa.array(rows[at] - self.bases[n])) for n, at in parts]
        taken = [array if array.type == kind else array.cast(kind) for array in taken]
        if len(parts) == 1:
            return taken[0]
        back = np.empty(len(rows), np.int64)
        back[np.concatenate([at for _, at in parts])] = np.arange(len(rows))
        return pa.concat_arrays(taken).take(pa.array(back))

    def kept(
        self, needed: Sequence[Mask], fields: Sequence[str], places: Sequence[str]
    ) -> pa.Table | Appended | None:
        """The change to store: an append of the new tuples that are needed, a new table, or None.

        `needed` has a mask for each segment.
        """
        more = int(needed[-1].sum())
        rows = sum(segment.rows for segment in self.stored)
        alive = sum(int(mask.sum()) for mask in needed[:-1])
        appended = rows - max((segment.rows for segment in self.stored), default=0)
        appends = len(self.stored)
        many = appends > _MANY or (appends > _APPENDS and 4 * (appended + more) > rows)
        if 2 * alive < rows or (many and more):
            return self._table(range(len(self.segments)), needed, fields, places)
        if not more:
            return None
        return Appended(self._table([appends], needed, fields, places))

    def _table(
        self,
        chosen: Sequence[int],
        needed: Sequence[Mask],
        fields: Sequence[str],
        places: Sequence[str],
    ) -> pa.Table:
        """The state table of some segments' needed rows."""
        local = {n: np.flatnonzero(needed[n]) for n in chosen}
        rows = np.concatenate([local[n] + self.bases[n] for n in chosen])
        columns: dict[str, Any] = {
            "_seq": pa.array(self.seq(rows)),
            "_ts": pa.array(self.ts(rows)),
            "_sub": self.subs(rows),
            NUMBER: pa.array(self.number(rows)),
            # A name no other segment ever has: by it a process knows what it has indexed.
            BATCH: pa.array(np.full(len(rows), secrets.randbits(62), np.int64)),
        }
        columns |= {name: self.column(name, rows) for name in fields}
        for place in places:
            parts = [self.segments[n].lineage(place).take(local[n]) for n in chosen]
            columns |= _written(place, stacked(parts))
        # A column of which no type is known has nothing but NULLs, which need not be stored.
        return pa.table({n: c for n, c in columns.items() if not pa.types.is_null(c.type)})


def new_segment(
    table: pa.Table, number: Ids, fields: Sequence[str], lineages: Mapping[str, Lineage]
) -> StemSegment:
    """Tuples that have just arrived."""
    columns = {name: table[name] for name in ("_seq", "_ts", *fields)}
    columns |= {"_sub": sub_bytes(table), NUMBER: pa.array(number)}
    return StemSegment(pa.table(columns), lineages)


def segments(table: pa.Table | None, cached_as: Hashable | None) -> list[StemSegment]:
    """The segments of a state table; those that this process has seen need no work."""
    if table is None or not table.num_rows:
        return []
    parts = _batches(table)
    if cached_as is None:
        return [StemSegment(in_arrival_order(part)) for part in parts.values()]
    seen = _cache.get(cached_as)
    found = {
        batch: seen.get(batch) or StemSegment(in_arrival_order(part), lasting=True)
        for batch, part in parts.items()
    }
    _cache.put(cached_as, found)
    return list(found.values())


def _batches(table: pa.Table) -> dict[int, pa.Table]:
    """What each step appended."""
    batch = np.asarray(table[BATCH], np.int64)
    starts = np.concatenate([[0], np.flatnonzero(batch[1:] != batch[:-1]) + 1, [len(batch)]])
    if len(np.unique(batch[starts[:-1]])) < len(starts) - 1:
        return _batches(table.take(pa.array(np.argsort(batch, kind="stable"))))
    runs = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    return {int(batch[a]): table.slice(a, b - a) for a, b in runs}


def _written(place: str, lineage: Lineage) -> dict[str, pa.ChunkedArray]:
    """The columns of a lineage, the ids of its bits with the first row."""
    table = lineage.smaller().to_arrow()
    of = pa.array([table.schema.metadata[b"ids"]], pa.binary()).slice(0, table.num_rows)
    nothing = pa.nulls(max(table.num_rows - 1, 0), pa.binary())
    return {
        f"{place}/{_IDS}": table[_IDS],
        f"{place}/{_BITS}": table[_BITS],
        f"{place}/{_OF}": pa.chunked_array([of, nothing]),
    }


class _Cache:
    """The segments of the state tables that this process used last, up to so many bytes."""

    def __init__(self) -> None:
        self._held: OrderedDict[Hashable, tuple[dict[int, StemSegment], int]] = OrderedDict()
        self._bytes = 0

    def get(self, table: Hashable) -> Mapping[int, StemSegment]:
        return self._held[table][0] if table in self._held else {}

    def put(self, table: Hashable, segments: dict[int, StemSegment]) -> None:
        """Cache the segments of a table in place of those it had before."""
        self._bytes -= self._held.pop(table, ({}, 0))[1]
        # Indexes take about as much again.
        size = 2 * sum(segment.table.nbytes for segment in segments.values())
        self._held[table] = segments, size
        self._bytes += size
        while self._bytes > _CACHED and len(self._held) > 1:
            self._bytes -= self._held.popitem(last=False)[1][1]


_cache = _Cache()
