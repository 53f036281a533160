"""Number groups: rows that are equal in some columns get the same number."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from auroral.kernels.ordering import Column, float_bits, whole
from auroral.progress.values import column_marks

Ids = npt.NDArray[np.int64]


def group_ids(columns: Sequence[Column], rows: int) -> tuple[Ids, Ids]:
    """Number groups by first appearance; also where each first appears.

    NULL is a value like others, so is NaN; -0.0 equals 0.0. Hash based, no sorting.

    >>> ids, first = group_ids([pa.array(["b", "a", "b", None])], 4)
    >>> ids.tolist(), first.tolist()
    ([0, 1, 0, 2], [0, 1, 3])
    """
    if not columns or not rows:
        return np.zeros(rows, np.int64), np.zeros(min(rows, 1), np.int64)
    ids, count = _encoded(columns[0])
    for column in columns[1:]:
        codes, more = _encoded(column)
        ids, count = _numbered(ids * more + codes, count * more)
    return ids, first_rows(ids, count)


def first_rows(ids: Ids, count: int) -> Ids:
    """Where each of the numbers 0 … `count` − 1 is found first."""
    first = np.zeros(count, np.int64)
    first[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
    return first


def match_groups(
    columns: Sequence[Column], rows: int, others: Sequence[Column], more: int
) -> tuple[Ids, Ids, int]:
    """Number the groups of two sets of rows together: the numbers of each set, and the count."""
    together = [
        pa.chunked_array([whole(a), whole(b)]) for a, b in zip(columns, others, strict=True)
    ]
    ids, first = group_ids(together, rows + more)
    return ids[:rows], ids[rows:], len(first)


def buckets_of(columns: Sequence[Column], rows: int, count: int) -> Ids:
    """The bucket of each row, which depends on nothing but the row's values.

    >>> buckets_of([pa.array(["a", None, "a", "b"])], 4, 8).tolist()
    [7, 0, 7, 3]
    """
    mixed = np.zeros(rows, np.uint64)
    if count > 1:
        for column in columns:
            mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + _hashed(whole(column))
    return (mixed % np.uint64(count)).astype(np.int64)


def _hashed(column: pa.Array) -> npt.NDArray[np.uint64]:
    """Hashes of values: the same for equal values, 0 for NULL."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        encoded = column.dictionary_encode()
        values = encoded.dictionary.cast(pa.binary()).to_pylist()
        found = np.array([zlib.crc32(value) for value in values] or [0], np.uint64)
        known = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
        numbers = found[pc.fill_null(encoded.indices, 0).to_numpy()]
    else:
        numbers, known = _as_integers(column)
    # Neighbours must part: multiply and fold the high bits down (splitmix64).
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.where(known, numbers ^ (numbers >> np.uint64(31)), np.uint64(0))


def _as_integers(column: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    known = column.is_valid().to_numpy(zero_copy_only=False)
    kind = column.type
    if pa.types.is_floating(kind):
        filled = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy() + 0.0
        return np.where(np.isnan(filled), np.nan, filled).view(np.uint64), known
    if pa.types.is_boolean(kind):
        return pc.fill_null(column, False).to_numpy(zero_copy_only=False).astype(np.uint64), known
    values, _ = column_marks(pa.chunked_array([column]))
    if values.dtype == object:
        return np.array([int(v) & (2**64 - 1) for v in values], np.uint64), known
    return values.astype(np.int64).view(np.uint64), known


def group_keys(columns: Sequence[Column], rows: Any) -> list[tuple[Any, ...]]:
    """Groups of some rows as marks name them: values as JSON can hold them."""
    taken = [whole(column).take(pa.array(rows, pa.int64())).to_pylist() for column in columns]
    return [_plain(group) for group in zip(*taken, strict=True)]


def _plain(group: Iterable[Any]) -> tuple[Any, ...]:
    plain = (type(None), bool, int, float, str)
    return tuple(v if isinstance(v, plain) and v == v else str(v) for v in group)


def _encoded(column: Column) -> tuple[Ids, int]:
    array = whole(column)
    if pa.types.is_floating(array.type):
        array = pa.array(float_bits(array), mask=array.is_null().to_numpy(zero_copy_only=False))
    elif pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64), 1
    codes = array.dictionary_encode(null_encoding="encode")
    return codes.indices.to_numpy().astype(np.int64), len(codes.dictionary)


def _numbered(codes: Ids, limit: int) -> tuple[Ids, int]:
    """Codes below `limit`, numbered by first appearance."""
    if limit > 4 * len(codes):
        found = pa.array(codes).dictionary_encode()
        return found.indices.to_numpy().astype(np.int64), len(found.dictionary)
    first = np.full(limit, -1, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    used = np.flatnonzero(first >= 0)
    order = np.argsort(first[used])
    number = np.empty(limit, np.int64)
    number[used[order]] = np.arange(len(used))
    return number[codes], len(used)
