"""An index of stored tuples: by join key, and within a key by the windowed attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.kernels.grouping import Ids
from auroral.kernels.ordering import Column, float_bits, integers, whole
from auroral.kernels.units import Mask
from auroral.progress.lowwater import Values

_LIMIT = 2**62
WHOLE = pa.int64()
"""The form of keys that are, or fit, 64-bit integers."""


def form_of(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """In which form values of two types are compared, as Spark would coerce them."""
    kinds = (one, other)
    if any(pa.types.is_null(kind) for kind in kinds):
        return WHOLE
    if any(pa.types.is_floating(kind) for kind in kinds):
        return pa.float64()
    if any(pa.types.is_decimal(kind) for kind in kinds):
        return pa.decimal256(76, max(getattr(kind, "scale", 0) for kind in kinds))
    if all(_is_text(kind) for kind in kinds):
        return pa.binary()
    return WHOLE


def keyed(column: Column, form: pa.DataType) -> pa.Array:
    """Values such that equal ones are the same: one NaN, no -0.0; integers where possible."""
    array = whole(column)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), WHOLE if pa.types.is_floating(form) else form)
    if pa.types.is_floating(form):
        values = float_bits(array.cast(form)).view(np.int64)
    elif form == WHOLE:
        kind = array.type
        values = integers(array.cast(pa.int8()) if pa.types.is_boolean(kind) else array)
    else:
        return array.cast(form)
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(values, mask=missing)


class ValueCodes(Protocol):
    """Numbers for the values of a column, 0, 1, … up to `count`."""

    @property
    def count(self) -> int: ...

    def look(self, values: pa.Array) -> Ids:
        """The numbers of the given values; -1 for values that the column does not have."""


@dataclass(frozen=True)
class Listed:
    """Codes by a list of distinct values."""

    distinct: pa.Array

    @property
    def count(self) -> int:
        return len(self.distinct)

    def look(self, values: pa.Array) -> Ids:
        encoded = values.dictionary_encode()
        asked = encoded.dictionary
        if 4 * len(asked) < self.count:
            # The smaller set is hashed, the larger one read past it.
            met = pc.index_in(self.distinct, value_set=asked)
            found = np.flatnonzero(np.asarray(met.is_valid()))
            places = np.full(len(asked) + 1, -1, np.int64)
            places[np.asarray(met.drop_null(), np.int64)] = found
        else:
            met = pc.fill_null(pc.index_in(asked, value_set=self.distinct), -1)
            places = np.append(np.asarray(met, np.int64), -1)
        return places[np.asarray(pc.fill_null(encoded.indices, len(asked)), np.int64)]


@dataclass(frozen=True)
class Ranked:
    """Codes of ascending distinct integers."""

    distinct: Ids

    @property
    def count(self) -> int:
        return len(self.distinct)

    def look(self, values: pa.Array) -> Ids:
        at = self.find(np.asarray(pc.fill_null(values, 0), np.int64))
        if values.null_count:
            at[np.asarray(values.is_null())] = -1
        return at

    def find(self, wanted: Ids) -> Ids:
        if not self.count:
            return np.full(len(wanted), -1, np.int64)
        at = np.minimum(np.searchsorted(self.distinct, wanted), self.count - 1)
        at[self.distinct[at] != wanted] = -1
        return at


class StemIndex:
    """Rows sorted by key, then by `ranged`; rows without either are not in it."""

    def __init__(self, keys: Sequence[pa.Array], ranged: Values, known: Mask):
        for key in keys:
            if key.null_count:
                known = known & np.asarray(key.is_valid())
        rows = np.flatnonzero(known)
        all_rows = len(rows) == len(known)
        ranged = ranged if all_rows else ranged[rows]
        keys = keys if all_rows else [key.take(pa.array(rows)) for key in keys]
        self._codes, self._together, code = _coded(keys)
        ascending = len(ranged) < 2 or bool((ranged[1:] >= ranged[:-1]).all())
        if code is None:
            order = np.arange(len(rows)) if ascending else np.argsort(ranged, kind="stable")
            rank = np.zeros(len(rows), np.int64)
        else:
            order = np.argsort(code, kind="stable") if ascending else np.lexsort((ranged, code))
            rank = code[order]
            if not self._codes:
                first = np.ones(len(rank), bool)
                first[1:] = rank[1:] != rank[:-1]
                self._codes = [Ranked(rank[first])]
                rank = np.cumsum(first) - 1
        self.rows: Ids = rows[order]
        """Where in the segment the rows are, in the order of the index."""
        self._rank, self._ranged = rank, ranged[order]

    def codes(self, keys: Sequence[pa.Array]) -> Ids | None:
        """The numbers of the given keys, -1 for unknown ones; None if the index has no keys."""
        if not keys:
            return None
        found = self._codes[0].look(keys[0])
        for codes, together, key in zip(self._codes[1:], self._together, keys[1:], strict=True):
            more = codes.look(key)
            both = together.find(found * codes.count + more)
            found = np.where((found < 0) | (more < 0), -1, both)
        return found

    def find(self, codes: Ids | None, low: Values, high: Values) -> tuple[Ids, Ids]:
        """Where the rows with these keys and low <= ranged <= high begin and end."""
        if not len(self._rank):
            none = np.zeros(len(low), np.int64)
            return none, none
        code = np.zeros(len(low), np.int64) if codes is None else codes
        placed = self._placed
        if placed is not None and low.dtype == high.dtype == np.int64:
            places, least, most, span = placed
            low = np.clip(low, least, most + 1) - least + 1
            high = np.clip(high, least - 1, most) - least + 1
        else:
            places, distinct, span = self._by_rank
            low = np.searchsorted(distinct, low, side="left")
            high = np.searchsorted(distinct, high, side="right") - 1
        begin = np.searchsorted(places, code * span + low, side="left")
        end = np.searchsorted(places, code * span + high, side="right")
        return begin, np.maximum(end, begin)  # -1 is below all there is

    @cached_property
    def _placed(self) -> tuple[Ids, int, int, int] | None:
        """Key and value as one number, if 64 bits hold it; the bounds of values, and their span."""
        if self._ranged.dtype != np.int64:
            return None
        least, most = int(self._ranged.min()), int(self._ranged.max())
        span = most - least + 3
        if span * (int(self._rank[-1]) + 2) >= _LIMIT or least <= -_LIMIT or most >= _LIMIT:
            return None
        return self._rank * span + (self._ranged - least + 1), least, most, span

    @cached_property
    def _by_rank(self) -> tuple[Ids, Values, int]:
        """The same with the ranks of values."""
        distinct, codes = np.unique(self._ranged, return_inverse=True)
        span = len(distinct) + 1
        return self._rank * span + codes, distinct, span


def _coded(keys: Sequence[pa.Array]) -> tuple[list[ValueCodes], list[Ranked], Ids | None]:
    """Codes of each column, of the columns so far together, and of each row.

    Of a single column of integers these are the values themselves, without codes yet.
    """
    if not keys:
        return [], [], None
    if len(keys) == 1 and keys[0].type == WHOLE:
        return [], [], np.asarray(keys[0], np.int64)
    codes: list[ValueCodes] = []
    together: list[Ranked] = []
    code = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        encoded = key.dictionary_encode()
        code = code * len(encoded.dictionary) + np.asarray(encoded.indices, np.int64)
        if codes:
            distinct, code = np.unique(code, return_inverse=True)
            together.append(Ranked(distinct))
        codes.append(Listed(encoded.dictionary))
    return codes, together, code


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    text = types.is_string(kind) or types.is_large_string(kind)
    return bool(text or types.is_binary(kind) or types.is_large_binary(kind))
