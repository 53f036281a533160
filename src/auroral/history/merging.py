"""Sorting rows by key, and merging sorted runs, with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from auroral.history.predicate import comparable_column


def sorted_by_key(table: pa.Table, key: str) -> pa.Table:
    """Rows in order of the key; equal keys stay in order. NaN comes after numbers, NULL last."""
    order = pc.sort_indices(comparable_column(table[key]))
    return table.take(order)


def merged_runs(inputs: Sequence[Iterator[pa.Table]], key: str) -> Iterator[pa.Table]:
    """The rows of several sorted runs in order of the key.

    Equal keys come in the order of the runs. At any time one batch of each run is in memory.
    """
    heads: list[pa.Table | None] = [_next(each) for each in inputs]
    while True:
        alive = [at for at, head in enumerate(heads) if head is not None]
        if not alive:
            return
        if len(alive) == 1:
            (only,) = alive
            head = heads[only]
            assert head is not None
            yield head
            heads[only] = _next(inputs[only])
            continue
        yield _up_to(heads, inputs, alive, key)


def _up_to(
    heads: list[pa.Table | None], inputs: Sequence[Iterator[pa.Table]], alive: list[int], key: str
) -> pa.Table:
    """The rows up to the least of the last keys at hand: nothing smaller can come any more.

    Rows with exactly that key may go on in the next batch of their run, so runs behind it have to
    wait with theirs: the rows before the key are taken, and rows with the key only of the runs
    up to the first whose batch ends with it.
    """
    lasts = [_last(heads[at], key) for at in alive]
    order = pc.sort_indices(pa.concat_arrays(lasts))
    bound = lasts[order[0].as_py()]
    ends = [at for at, last in zip(alive, lasts, strict=True) if _equal(last, bound)]
    first = ends[0]
    parts = []
    for at in alive:
        head = heads[at]
        assert head is not None
        count = _count(head, bound, key, with_equal=at <= first)
        parts.append(head.slice(0, count))
        rest = head.slice(count)
        heads[at] = rest if rest.num_rows else _next(inputs[at])
    return sorted_by_key(pa.concat_tables(parts), key)


def _next(tables: Iterator[pa.Table]) -> pa.Table | None:
    """The next batch that has rows."""
    return next((table for table in tables if table.num_rows), None)


def _last(table: pa.Table | None, key: str) -> pa.Array:
    assert table is not None
    column = comparable_column(table[key].slice(table.num_rows - 1))
    return pa.array([column[0].as_py()], column.type)


def _equal(one: pa.Array, other: pa.Array) -> bool:
    if one.null_count or other.null_count:
        return bool(one.null_count == other.null_count)
    a, b = one[0].as_py(), other[0].as_py()
    return bool(a == b or (a != a and b != b))


def _count(table: pa.Table, bound: pa.Array, key: str, *, with_equal: bool) -> int:
    """How many rows are before a key, or up to it."""
    values = comparable_column(table[key])
    nulls = int(values.null_count)
    rows = int(table.num_rows)
    if bound.null_count:
        return rows if with_equal else rows - nulls
    value = bound[0].as_py()
    if value != value:  # NaN
        nan = pc.sum(pc.is_nan(values)).as_py() or 0
        return rows - nulls - (0 if with_equal else int(nan))
    compare = pc.less_equal if with_equal else pc.less
    return int(pc.sum(compare(values, pa.scalar(value, values.type))).as_py() or 0)
