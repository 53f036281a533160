"""Numbers for the groups and the windows of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.kernels.grouping import Ids, first_rows, group_ids
from auroral.progress.lowwater import Values

_LIMIT = 2**62


@dataclass(frozen=True)
class Numbering:
    """Groups are numbered: first those remembered, then others as they appear."""

    parts: tuple[Ids, ...]
    """The group of each row, of each of the tables that were numbered together."""
    by: tuple[pa.Array, ...]
    """The columns of each group."""
    count: int


def number_groups(tables: Sequence[Sequence[pa.Array]], lengths: Sequence[int]) -> Numbering:
    """Number the groups of several tables with the same columns alike."""
    rows = sum(lengths)
    columns = [pa.concat_arrays(list(parts)) for parts in zip(*tables, strict=True)]
    ids, first = group_ids(columns, rows)
    if np.array_equal(first, np.arange(lengths[0])):  # the groups of the first table, once each
        by = tuple(tables[0])
    else:
        by = tuple(column.take(pa.array(first)) for column in columns)
    cuts = np.cumsum(lengths)[:-1]
    return Numbering(tuple(np.split(ids, cuts)), by, len(first))


def number_windows(
    windows: tuple[Sequence[pa.Array], Values], pairs: tuple[Sequence[pa.Array], Values]
) -> tuple[Ids, Ids]:
    """The window of each pair, and the pairs that made new ones; known windows come first."""
    known = len(windows[1])
    starts = _codes(np.concatenate([windows[1], pairs[1]]) if known else pairs[1])
    columns = [
        pa.concat_arrays([one, other]) for one, other in zip(windows[0], pairs[0], strict=True)
    ]
    packed, span, rest = _packed([pa.array(starts), *columns])
    if rest or not len(starts):
        ids, first = group_ids([pa.array(packed), *rest], len(starts))
    else:
        ids, first = _by_first(_first_rows(packed, span))
    return ids[known:], first[known:] - known


def _codes(starts: Values) -> Ids:
    """Integers, the same for equal starts."""
    if starts.dtype == np.float64:
        starts = starts.view(np.int64)
    if starts.dtype == object:
        return np.unique(starts, return_inverse=True)[1].astype(np.int64)
    if len(starts):
        # Starts are far apart; their distances have a common measure.
        away = starts - starts[0]
        measure = int(np.gcd.reduce(away))
        return away // measure if measure > 1 else starts
    return starts


def _packed(columns: Sequence[pa.Array]) -> tuple[Ids, int, list[pa.Array]]:
    """Whole-numbered columns as one below `span`, as far as 64 bits hold it; and the others."""
    packed, span = np.zeros(len(columns[0]), np.int64), 1
    rest = []
    for column in columns:
        width = _width(column)
        if width is None or width[1] * span >= _LIMIT:
            rest.append(column)
            continue
        codes = np.asarray(column).astype(np.int64, copy=False) - width[0]
        packed = codes if span == 1 else packed * width[1] + codes
        span *= width[1]
    return packed, span, rest


def _width(column: pa.Array) -> tuple[int, int] | None:
    """The least of a column of whole numbers and how many there may be."""
    if not pa.types.is_integer(column.type) or column.null_count or not len(column):
        return None
    bounds = pc.min_max(column)
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    return None if most >= 2**63 else (least, most - least + 1)


def _first_rows(codes: Ids, span: int) -> Ids:
    """For each row the first row with the same code."""
    rows = len(codes)
    if span <= 8 * rows and rows < 2**31:
        first = np.empty(span, np.int32)
        first[codes[::-1]] = np.arange(rows - 1, -1, -1, dtype=np.int32)
        earliest: Ids = first[codes].astype(np.int64)
        return earliest
    bits = rows.bit_length()
    if span >= 2 ** (62 - bits):
        found = pa.array(codes).dictionary_encode().indices.to_numpy().astype(np.int64)
        known: Ids = first_rows(found, int(found.max()) + 1)[found]
        return known
    # Sorting numbers is faster than hashing them; the row is in the low bits.
    ordered = np.sort((codes << bits) | np.arange(rows))
    row = ordered & ((1 << bits) - 1)
    begins = np.flatnonzero(np.diff(ordered >> bits, prepend=-1))
    lengths = np.diff(np.append(begins, rows))
    found = np.empty(rows, np.int64)
    found[row] = np.repeat(row[begins], lengths)
    return found


def _by_first(first_of: Ids) -> tuple[Ids, Ids]:
    """Number rows by the first row like them."""
    is_first = first_of == np.arange(len(first_of))
    number = np.cumsum(is_first) - 1
    return number[first_of], np.flatnonzero(is_first)
