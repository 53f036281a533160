"""Numbers for groups: rows that agree in some columns get the same one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.kernels.ordering import Column, float_bits, whole

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
    """Number the groups of two sets of rows alike: the numbers of each, and how many there are."""
    together = [
        pa.chunked_array([whole(a), whole(b)]) for a, b in zip(columns, others, strict=True)
    ]
    ids, first = group_ids(together, rows + more)
    return ids[:rows], ids[rows:], len(first)


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
