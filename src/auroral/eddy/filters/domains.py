"""The constants of an attribute cut its domain into regions: points, and what lies between.

Of m constants, in order, constant i is region 2i + 1 and what lies below it region 2i; region 2m
is what lies above all, region 2m + 1 is NULL. Where only equality is asked, values that are no
constant are all in region 0.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from auroral.eddy.bitmap import distinct
from auroral.eddy.filters.keys import Keys, Rows, Scale

_MAPPED = 1 << 14
"""So many codes can be known one by one."""
_TABLE, _ROOM = 1 << 16, 4
"""Integers that lie closer together than this, or that are so dense, are looked up in a table."""


class Domain:
    """The different constants of an attribute; read-only."""

    def __init__(self, scale: Scale, constants: Keys, ordered: bool):
        self.scale = scale
        self.ordered = ordered or scale != "bytes"
        keys = constants if constants.nulls is None else constants.take(~constants.nulls)
        if scale == "bytes":
            assert keys.distinct is not None
            used = keys.distinct.take(pa.array(distinct(keys.data)))
            order = pc.sort_indices(used)
            self.texts: pa.Array | None = used.take(order)
            self.numbers: NDArray[Any] = np.empty(0, np.int64)
            self.size = len(used)
        else:
            self.texts = None
            self.numbers = distinct(keys.data)
            self.size = len(self.numbers)
        self.null = 2 * self.size + 1
        self.regions = self.null + 1
        self._key, self._hashes, self._places = self._hashed()
        self._low, self._table = self._tabled()
        self._coded: Rows | None = None
        """The region of each code; None: codes are regions."""
        if self._table is not None and len(self._table) < _MAPPED:
            self._coded = np.append(self._table, self.null)
        self.codes = self.regions if self._coded is None else len(self._coded)
        self.mapped = self.codes <= _MAPPED
        """Whether codes are so few that each can be known by itself."""

    def places(self, keys: Keys) -> Rows:
        """The numbers of constants; they must be of this domain. 0 for NULL."""
        regions = self.regions_of(keys)
        if keys.nulls is not None:
            regions[keys.nulls] = 1
        return regions >> 1

    def regions_of(self, keys: Keys) -> Rows:
        """The region each value lies in."""
        if self.scale == "bytes":
            assert keys.distinct is not None
            found = self._text_regions(keys.distinct)
            regions = found[keys.data] if len(found) else np.zeros(len(keys), np.intp)
        elif self._table is not None:
            regions = self._table.take(self._offsets(keys.data))
        else:
            regions = _searched(self.numbers, keys.data)
        if keys.nulls is not None:
            regions[keys.nulls] = self.null
        return regions

    def codes_of(self, keys: Keys) -> Rows:
        """Numbers below `codes` that tell values apart at least as well as regions do.

        Found faster than regions: of integers that lie close together each has its own.
        """
        if self._coded is None:
            return self.regions_of(keys)
        found = self._offsets(keys.data)
        if keys.nulls is not None:
            found[keys.nulls] = self.codes - 1
        return found

    def codes_of_integers(self, data: NDArray[Any]) -> Rows:
        """The same of integers as they came, none of them NULL."""
        low, high = self._low, self._low + self.codes - 2
        bounds = np.iinfo(data.dtype)
        if self._coded is None or data.itemsize == 8 or low < bounds.min or high > bounds.max:
            return self.codes_of(Keys(data.astype(np.int64, copy=False), None))
        found = np.maximum(data, low)
        np.minimum(found, high, out=found)
        codes: Rows = np.subtract(found, low, dtype=np.intp)
        return codes

    def decoded(self, codes: Rows) -> Rows:
        """The regions of codes."""
        return codes if self._coded is None else self._coded.take(codes)

    def _offsets(self, data: NDArray[np.int64]) -> Rows:
        """Where in the table values are; those outside are like the ones at its ends."""
        assert self._table is not None
        # Within the table before the subtraction, which could wrap around.
        found = np.maximum(data, self._low)
        np.minimum(found, self._low + len(self._table) - 1, out=found)
        found -= self._low
        return found

    def _tabled(self) -> tuple[int, Rows | None]:
        if self.scale in ("bytes", "float") or self.numbers.dtype != np.int64 or not self.size:
            return 0, None
        low, high = int(self.numbers[0]) - 1, int(self.numbers[-1]) + 1
        if high - low > max(_TABLE, _ROOM * self.size) or low < -(1 << 62) or high > 1 << 62:
            return 0, None
        return low, _searched(self.numbers, np.arange(low, high + 1))

    # ── texts ──

    def _text_regions(self, values: pa.Array) -> Rows:
        if self.ordered:
            return _searched(self._objects, _objects(values))
        if not self.size:
            return np.zeros(len(values), np.intp)
        assert self.texts is not None
        hashes = _hash(values, self._key)
        at = np.minimum(np.searchsorted(self._hashes, hashes), self.size - 1)
        places = self._places[at].astype(np.intp)
        same = pc.equal(self.texts.take(pa.array(places)), values)
        return np.where(same.to_numpy(zero_copy_only=False), 2 * places + 1, 0)

    def _hashed(self) -> tuple[str, NDArray[np.uint64], NDArray[np.int32]]:
        """Hashes of all texts, none of them twice, in order."""
        if self.texts is None or self.ordered:
            return "", np.empty(0, np.uint64), np.empty(0, np.int32)
        for attempt in range(100):
            key = f"{attempt:016d}"
            hashes = _hash(self.texts, key)
            order = np.argsort(hashes)
            hashes = hashes[order]
            if not (hashes[1:] == hashes[:-1]).any():
                return key, hashes, order.astype(np.int32)
        raise AssertionError("no hash tells the constants apart")

    @cached_property
    def _objects(self) -> NDArray[np.object_]:
        assert self.texts is not None
        return _objects(self.texts)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_objects"}


def _objects(texts: pa.Array) -> NDArray[np.object_]:
    found = np.empty(len(texts), object)
    found[:] = texts.to_pylist()
    return found


def _hash(texts: pa.Array, key: str) -> NDArray[np.uint64]:
    objects = texts.to_numpy(zero_copy_only=False)
    return pd.util.hash_array(objects, hash_key=key, categorize=False)


def _searched(constants: NDArray[Any], values: NDArray[Any]) -> Rows:
    at = np.searchsorted(constants, values)
    regions = 2 * at
    if len(constants):
        regions += constants[np.minimum(at, len(constants) - 1)] == values
    return regions
