"""Pairs of rows within a band, and the tuples made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.kernels.grouping import Ids
from auroral.kernels.ordering import joined, moments, of_matrix, sub_bytes
from auroral.progress.lowwater import END, Values

FieldTypes = tuple[tuple[str, pa.DataType], ...]
PairTypes = tuple[FieldTypes, FieldTypes]
_LIMIT = 2**62
_EXACT = 2**53
_SIDES = pa.array([b"\x00", b"\x01"], pa.binary())


@dataclass(frozen=True)
class Units:
    """Numbers of two attributes in common units: floats if either is, else the finer scale."""

    floats: bool
    scales: tuple[int, int]

    @staticmethod
    def of(left: pa.DataType, right: pa.DataType) -> Units:
        floats = pa.types.is_floating(left) or pa.types.is_floating(right)
        return Units(floats, (_scale(left), _scale(right)))

    def column(self, side: int, values: Values) -> Values:
        """Numbers of one side, as arrays."""
        own = self.scales[side]
        if self.floats:
            if own and (values.dtype == object or np.abs(values).max(initial=0) >= _EXACT):
                return np.array([int(v) / 10**own for v in values], np.float64)
            return values.astype(np.float64) / 10**own if own else values.astype(np.float64)
        factor = 10 ** (max(self.scales) - own)
        if factor == 1:
            return values
        near = values.dtype == np.int64 and int(np.abs(values).max(initial=0)) * factor < _LIMIT
        return np.asarray((values if near else values.astype(object)) * factor)

    def one(self, side: int, value: Any) -> Any:
        """One number: a length or a mark."""
        if value is None or (isinstance(value, float) and value == END):
            return value
        own = self.scales[side]
        if self.floats:
            return value / 10**own if own else float(value)
        return value * 10 ** (max(self.scales) - own)


def _scale(kind: pa.DataType) -> int:
    return int(kind.scale) if pa.types.is_decimal(kind) else 0


def band_pairs(
    probe: Ids, low: Values, high: Values, build: Ids, on: Values, groups: int
) -> tuple[Ids, Ids]:
    """Rows of both with equal numbers, from 0 up to `groups`, and low <= on <= high.

    >>> one, two = np.array([0, 1]), np.array([1, 0, 1])
    >>> at, found = band_pairs(one, np.array([4, 4]), np.array([6, 6]), two, np.array([5, 7, 6]), 2)
    >>> at.tolist(), found.tolist()
    ([1, 1], [0, 2])
    """
    asked, kept = _common(probe, build, groups)
    if not len(asked) or not len(kept):
        return asked[:0], kept[:0]
    probe, low, high, build, on = probe[asked], low[asked], high[asked], build[kept], on[kept]
    codes, least, most, span = _coded(on, low, high, groups)
    places = build * span + codes
    order = np.argsort(places)
    places = places[order]
    begin = np.searchsorted(places, probe * span + least, side="left")
    end = np.searchsorted(places, probe * span + most, side="right")
    at, found = expanded(begin, end)
    return asked[at], kept[order[found]]


def expanded(begin: Ids, end: Ids) -> tuple[Ids, Ids]:
    """All numbers of the ranges begin[i] … end[i] − 1, and the i of each."""
    counts = np.maximum(end - begin, 0)
    at = np.repeat(np.arange(len(begin)), counts)
    skipped = np.cumsum(counts) - counts
    return at, np.arange(len(at)) + (begin - skipped)[at]


def _common(probe: Ids, build: Ids, groups: int) -> tuple[Ids, Ids]:
    """Rows of both whose number the other has too; -1 is no number."""
    asked, there = np.zeros(groups + 1, bool), np.zeros(groups + 1, bool)
    asked[probe] = True
    there[build] = True
    asked[-1] = there[-1] = False
    return np.flatnonzero(there[probe]), np.flatnonzero(asked[build])


def _coded(on: Values, low: Values, high: Values, groups: int) -> tuple[Ids, Ids, Ids, int]:
    """Small integers that compare as values and bounds do, and how many there are at most."""
    if on.dtype == low.dtype == high.dtype == np.int64:
        least, most = int(on.min()), int(on.max())
        span = most - least + 3
        if span * groups < _LIMIT and least > -_LIMIT and most < _LIMIT:
            bounds = np.clip(low, least, most + 1), np.clip(high, least - 1, most)
            return on - least + 1, bounds[0] - least + 1, bounds[1] - least + 1, span
    ranked, codes = np.unique(on, return_inverse=True)
    at_least = np.searchsorted(ranked, low, side="left")
    at_most = np.searchsorted(ranked, high, side="right") - 1
    return codes, at_least, at_most, len(ranked) + 1


def paired(
    sides: Sequence[pa.Table],
    rows: Sequence[Ids],
    fields: Sequence[Sequence[str]],
    unread: PairTypes = ((), ()),
) -> pa.Table:
    """Tuples of pairs, at the moment of the later, which is the right one if they are equal.

    Fields that nobody reads are NULL.
    """
    seq = [np.asarray(t["_seq"], np.int64)[r] for t, r in zip(sides, rows, strict=True)]
    ts = [np.asarray(t["_ts"], np.int64)[r] for t, r in zip(sides, rows, strict=True)]
    columns = {
        "_seq": pa.array(np.maximum(*seq)),
        "_ts": pa.array(np.minimum(*ts)),
        "_sub": _pair_subs(sides, rows, seq),
    }
    return pa.table(columns | pair_fields(sides, rows, fields, unread))


def pair_fields(
    sides: Sequence[pa.Table],
    rows: Sequence[Ids],
    fields: Sequence[Sequence[str]],
    unread: PairTypes = ((), ()),
) -> dict[str, pa.ChunkedArray]:
    """Fields of both, as `l_<name>` and `r_<name>`; `unread` ones are NULL."""
    found: dict[str, pa.ChunkedArray] = {}
    for prefix, table, at, names, left_out in zip("lr", sides, rows, fields, unread, strict=True):
        types = dict(left_out)
        taken = table.select([name for name in names if name not in types]).take(pa.array(at))
        for name in names:
            empty = name in types
            found[f"{prefix}_{name}"] = pa.nulls(len(at), types[name]) if empty else taken[name]
    return found


def _pair_subs(sides: Sequence[pa.Table], rows: Sequence[Ids], seq: Sequence[Ids]) -> Any:
    left_later = seq[0] > seq[1]
    partner = np.where(left_later, seq[1], seq[0])
    subs = [sub_bytes(table) for table in sides]
    if not any(pc.max(pc.binary_length(sub)).as_py() for sub in subs):
        matrix = np.empty((len(partner), 9), np.uint8)
        matrix[:, 0] = ~left_later
        matrix[:, 1:] = partner.astype(">u8").view(np.uint8).reshape(-1, 8)
        return of_matrix(matrix)
    left, right = (sub.take(pa.array(at)) for sub, at in zip(subs, rows, strict=True))
    first = pa.array(left_later)
    return joined(
        _SIDES.take(pa.array((~left_later).astype(np.int8))),
        pc.if_else(first, left, right),
        moments(partner),
        pc.if_else(first, right, left),
    )
