"""Results of many queries together: each tuple once, with the list of those it satisfies."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.eddy.registered import NEVER, Ids, RegisteredQuery
from auroral.engine.results.views import Rows, View, by_query, column_of, is_windowed, lineage_of
from auroral.network.types import HIDDEN

QUERIES = "queries"
"""The column with the names of the queries."""
NAMED = pa.list_(pa.dictionary(pa.int32(), pa.string()))
"""Its type: of each match four bytes, of each query its name once."""
_NUMBERED = pa.large_list(pa.int32())
"""What it is until all is read: ids, of which there may be more than 32 bits can count."""

_ROWS = 4_096
"""Tuples whose lists are made at a time."""
_MOST = 2**31 - 1
"""So many ids fit one chunk of the column."""
_DENSE = 16
"""Up to so many places for each id, ids are looked up by place; searching takes longer."""


def together_view(
    chunks: Sequence[RegisteredQuery],
    names: Callable[[Ids], pa.Array],
    taken: Callable[[RegisteredQuery], int],
) -> View:
    """One row for each tuple, with a list of the queries it satisfies.

    What a query has `taken` by itself before a moment is not given again.
    """
    fields = _shared_fields(chunks)
    schema = pa.schema([*fields.values(), pa.field(QUERIES, _NUMBERED)])
    heads = _Heads(chunks, taken)

    def rows(table: pa.Table) -> pa.Table:
        lists = pa.chunked_array(list(_lists(table, heads)), _NUMBERED)
        hidden = [n for n in HIDDEN if n in table.column_names]
        part = table.select(hidden)
        for column, field in fields.items():
            part = part.append_column(field, column_of(table, pa.field(column, field.type)))
        part = part.append_column(schema.field(QUERIES), lists)
        lengths = pc.list_value_length(lists)
        if pc.any(pc.equal(lengths, 0)).as_py():
            part = part.filter(pc.greater(lengths, 0))
        return by_query(part, _least(part[QUERIES])) if is_windowed(chunks) else part

    def finish(table: pa.Table) -> pa.Table:
        place = table.column_names.index(QUERIES)
        return table.set_column(place, QUERIES, named(table[QUERIES], names))

    since = min(entry.since for entry in chunks)
    return View(chunks[0].log, schema, since, rows, finish)


class _Heads:
    """From which moment on the results of each query are given."""

    def __init__(self, chunks: Sequence[RegisteredQuery], taken: Callable[[RegisteredQuery], int]):
        chunks = sorted(chunks, key=lambda entry: entry.first)
        self._firsts = np.array([entry.first for entry in chunks])
        self._lasts = np.array([entry.first + entry.count for entry in chunks])
        self._heads = np.array([max(taken(entry), entry.since) for entry in chunks])
        self._first = int(self._firsts[0])
        self._span = int(self._lasts[-1]) - self._first
        self._by_place: Rows | None = None

    def of(self, ids: Ids) -> Rows:
        """The moments of some queries; of those that are not among these, `NEVER`."""
        if self._by_place is None and self._span > _DENSE * len(ids):
            at = np.maximum(np.searchsorted(self._firsts, ids, side="right") - 1, 0)
            there = (ids >= self._firsts[at]) & (ids < self._lasts[at])
            return np.where(there, self._heads[at], NEVER)
        if self._by_place is None:  # the first and the last place are everybody else's
            self._by_place = np.full(self._span + 2, NEVER)
            for first, last, head in zip(self._firsts, self._lasts, self._heads, strict=True):
                self._by_place[first - self._first + 1 : last - self._first + 1] = head
        return self._by_place[np.clip(ids - (self._first - 1), 0, self._span + 1)]


def _lists(table: pa.Table, heads: _Heads) -> Iterator[pa.Array]:
    """The ids of each tuple that are to be given, for some tuples at a time."""
    for start in range(0, table.num_rows, _ROWS):
        some = table.slice(start, _ROWS)
        offsets, ids = lineage_of(some).lists()
        moments = np.repeat(some["_seq"].to_numpy(), np.diff(offsets))
        keep = moments >= heads.of(ids)
        if not keep.all():
            before = np.concatenate([[0], np.cumsum(keep)])
            offsets, ids = before[offsets], ids[keep]
        yield pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(ids))


def _least(lists: pa.ChunkedArray) -> Ids:
    """The least id of each list; none is empty."""
    parts = [
        np.minimum.reduceat(
            chunk.flatten().to_numpy(), chunk.offsets.to_numpy()[:-1] - chunk.offsets[0].as_py()
        )
        for chunk in lists.chunks
        if len(chunk)
    ]
    return np.concatenate([np.empty(0, np.int32), *parts])


def named(lists: pa.ChunkedArray, names: Callable[[Ids], pa.Array]) -> pa.ChunkedArray:
    """Lists of ids as lists of names; a name is made once, and only if it occurs.

    >>> ids = pa.chunked_array([[[7, 9], [9]]], _NUMBERED)
    >>> named(ids, lambda ids: pa.array([f"q{i}" for i in ids])).to_pylist()
    [['q7', 'q9'], ['q9']]
    """
    parts = [chunk.flatten().to_numpy() for chunk in lists.chunks]
    code_of, used = _coded(parts)
    once = names(used).dictionary_encode()  # a member that came again has its name twice
    codes = once.indices.to_numpy()
    found = []
    for chunk, ids in zip(lists.chunks, parts, strict=True):
        offsets = chunk.offsets.to_numpy() - chunk.offsets[0].as_py()
        for start, end in itertools.pairwise(_cuts(offsets)):
            low, high = offsets[start], offsets[end]
            items = pa.DictionaryArray.from_arrays(codes[code_of(ids[low:high])], once.dictionary)
            ends = (offsets[start : end + 1] - low).astype(np.int32)
            found.append(pa.ListArray.from_arrays(pa.array(ends), items))
    return pa.chunked_array(found, NAMED)


def _cuts(offsets: Rows) -> list[int]:
    """Where to cut lists so that no chunk has more than `_MOST` items."""
    cuts = [0]
    while cuts[-1] < len(offsets) - 1:
        fitting = np.searchsorted(offsets, offsets[cuts[-1]] + _MOST, side="right") - 1
        cuts.append(max(int(fitting), cuts[-1] + 1))
    return cuts


def _coded(parts: Sequence[Ids]) -> tuple[Callable[[Ids], Any], Ids]:
    """The different ids, ascending; and what gives each its place among them."""
    last = max((int(ids.max(initial=-1)) for ids in parts), default=-1)
    if last < _DENSE * sum(map(len, parts)):
        seen = np.zeros(last + 1, bool)
        for ids in parts:
            seen[ids] = True
        places = np.cumsum(seen, dtype=np.int32) - 1
        return lambda ids: places[ids], np.flatnonzero(seen).astype(np.int32)
    used = np.unique(np.concatenate([np.empty(0, np.int32), *parts]))
    return lambda ids: np.searchsorted(used, ids), used


def _shared_fields(chunks: Sequence[RegisteredQuery]) -> dict[str, pa.Field]:
    """The columns of the log that some of the queries select, and the fields they become.

    A column is called as all queries that select it call it, otherwise as the log does.
    """
    names: dict[str, set[str]] = {}
    types: dict[str, pa.DataType] = {}
    for entry in {id(e.read): e for e in chunks}.values():
        for item in entry.read.items:
            attribute = item.attribute
            if not attribute.slots:
                column = attribute.field or attribute.text
                names.setdefault(column, set()).add(item.name)
                types[column] = attribute.type.arrow()
    called = {column: found.pop() if len(found) == 1 else column for column, found in names.items()}
    while twice := [name for name, n in Counter([QUERIES, *called.values()]).items() if n > 1]:
        # Columns differ in their own names; only one of them may be called as the list is.
        own = {column: column if column != QUERIES else f"{QUERIES}_" for column in called}
        called |= {column: own[column] for column, name in called.items() if name in twice}
    return {column: pa.field(name, types[column]) for column, name in called.items()}
