"""Which tuples a drop box drops: a function of tuples alone, stable for ever (pure).

A restart must drop what was dropped before it, so the hash of this module never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.shedding.drops import Drop, DropInterval, DropReason

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_TWO_TO_64 = 2.0**64


def droppers(tuples: pa.Table, drops: Sequence[Drop]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For each tuple the first of some drop boxes that drops it, by number; -1 if none does.

    `tuples` have the column `_seq`, their moment.

    >>> tuples = pa.table({"_seq": [1, 2, 3, 4], "pos": [10.0, None, 30.0, 40.0]})
    >>> far = Drop("far", "reports", 1.0, 7, (), DropInterval("pos", 20.0, 40.0))
    >>> droppers(tuples, [far]).tolist()
    [-1, -1, 0, -1]
    """
    found = np.full(tuples.num_rows, -1)
    for number, drop in enumerate(drops):
        found[dropped_rows(tuples, drop) & (found < 0)] = number
    return found


def dropped_rows(tuples: pa.Table, drop: Drop) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each tuple whether a drop box drops it."""
    chosen = chosen_moments(tuples["_seq"].to_numpy(), drop.rate, drop.seed)
    if drop.interval is not None and chosen.any():
        chosen &= within(tuples[drop.interval.field], drop.interval)
    return chosen


def without_dropped(
    tuples: pa.Table, drops: Sequence[Drop]
) -> tuple[pa.Table, dict[DropReason, int]]:
    """The tuples that drop boxes let through, and how many they dropped for which reason."""
    found = droppers(tuples, drops)
    gone = found >= 0
    if not gone.any():
        return tuples, {}
    numbers = np.bincount(found[gone], minlength=len(drops)).tolist()
    counts: dict[DropReason, int] = {}
    for drop, count in zip(drops, numbers, strict=True):
        if count:
            counts[drop.reason] = counts.get(drop.reason, 0) + count
    return tuples.filter(pa.array(~gone)), counts


def columns_of(drops: Sequence[Drop]) -> list[str]:
    """The columns by which drop boxes decide."""
    fields = [drop.interval.field for drop in drops if drop.interval is not None]
    return list(dict.fromkeys(["_seq", *fields]))


def chosen_moments(
    moments: np.ndarray[Any, np.dtype[np.int64]], rate: float, seed: int
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each moment whether it is among the share `rate` that is chosen.

    A larger rate with the same seed chooses the same moments and more.

    >>> moments = np.arange(10_000)
    >>> half, most = (chosen_moments(moments, rate, 5) for rate in (0.5, 0.9))
    >>> int(half.sum()), int(most.sum()), bool((most | ~half).all())
    (5107, 9039, True)
    """
    if rate <= 0:
        return np.zeros(len(moments), dtype=bool)
    if rate >= 1:
        return np.ones(len(moments), dtype=bool)
    return hashes(moments, seed) < np.uint64(int(rate * _TWO_TO_64))


def hashes(
    moments: np.ndarray[Any, np.dtype[np.int64]], seed: int
) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """64 bits of each moment and a seed: splitmix64, of the seed first and then of their sum."""
    start = _mixed(np.array([seed & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64))
    return _mixed(moments.astype(np.uint64) + start)


def _mixed(
    values: np.ndarray[Any, np.dtype[np.uint64]],
) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """splitmix64, as Steele, Lea and Flood have published it; sums and products wrap around."""
    found = values + _GAMMA
    found = (found ^ (found >> np.uint64(30))) * _FIRST
    found = (found ^ (found >> np.uint64(27))) * _SECOND
    return found ^ (found >> np.uint64(31))


def within(column: pa.ChunkedArray, interval: DropInterval) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each value whether it is in an interval; NULL and NaN are not."""
    values = interval_values(column)
    found: np.ndarray[Any, np.dtype[np.bool_]] = ~np.isnan(values)
    if interval.low is not None:
        found &= values >= interval.low
    if interval.high is not None:
        found &= values < interval.high
    return found


def interval_values(column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The values of a column as intervals compare them, NaN for NULL.

    Timestamps are µs since 1970, dates days since then.
    """
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    elif pa.types.is_date(column.type):
        column = column.cast(pa.date32()).cast(pa.int32())
    numbers = column.cast(pa.float64(), safe=False)
    found: np.ndarray[Any, np.dtype[np.float64]] = pc.fill_null(numbers, float("nan")).to_numpy()
    return found
