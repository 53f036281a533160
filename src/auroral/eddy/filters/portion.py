"""The tuples of a chunk as the index reads them: each value is computed once, when needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from auroral.continuous.sharing.template import Attribute
from auroral.eddy.filters.domains import Domain
from auroral.eddy.filters.keys import Keys, Mask, Rows, Scale, keys_of
from auroral.eddy.vectors.evaluation import TupleColumns


class BatchReader:
    """The fields of a batch as keys and codes.

    Texts are told apart once for all chunks; other values become keys chunk by chunk, which
    stays in the cache.
    """

    def __init__(self, tuples: TupleColumns):
        self.tuples = tuples
        self._texts: dict[str, Keys] = {}
        self._integers: dict[str, NDArray[Any] | None] = {}
        self._codes: dict[tuple[str, int], Rows] = {}

    def keys(self, field: str, scale: Scale, at: slice) -> Keys:
        """The keys of some tuples in a row."""
        values = self.tuples.column(field)
        if scale != "bytes":
            return keys_of(values[at], scale)
        if field not in self._texts:
            self._texts[field] = keys_of(values, scale)
        return self._texts[field].take(at)

    def codes(self, field: str, domain: Domain, at: slice) -> Rows:
        """The codes of some tuples in a row."""
        integers = self._plain(field) if domain.scale == "int" else None
        if integers is not None:
            return domain.codes_of_integers(integers[at])
        if domain.scale != "bytes":
            return domain.codes_of(self.keys(field, domain.scale, at))
        found = self._codes.get((field, id(domain)))
        if found is None:
            whole = self.keys(field, domain.scale, slice(0, self.tuples.rows))
            found = self._codes[field, id(domain)] = domain.codes_of(whole)
        return found[at]

    def _plain(self, field: str) -> NDArray[Any] | None:
        """A field as it lies in memory, if it holds integers and no NULL."""
        if field not in self._integers:
            values = self.tuples.column(field)
            plain = pa.types.is_integer(values.type) and not values.null_count
            self._integers[field] = values.to_numpy() if plain else None
        return self._integers[field]


@dataclass
class _Memo:
    """The values of a computed attribute that were computed so far."""

    place: NDArray[np.intp]
    """Of each tuple of the chunk, where in `values` its value is; -1: not evaluated."""
    values: pa.Array
    failed: Mask


class Portion:
    """Tuples `start` to `stop` of a batch; rows are counted from `start`."""

    def __init__(self, reader: BatchReader, start: int, stop: int):
        self.reader = reader
        self.start = start
        self.rows = stop - start
        self.slice = slice(start, stop)
        self.reasons: dict[str, str] = {}
        """By attribute why its first failure was one."""
        self._keys: dict[tuple[str, Scale], Keys] = {}
        self._codes: dict[tuple[str, int], Rows] = {}
        self._memo: dict[str, _Memo] = {}

    def keys(
        self, attribute: Attribute, scale: Scale, rows: NDArray[Any] | None = None
    ) -> tuple[Keys, Mask | None]:
        """Keys of some rows (None: of all), and which of them could not be evaluated."""
        if attribute.field is not None:
            key = attribute.field, scale
            if key not in self._keys:
                self._keys[key] = self.reader.keys(*key, self.slice)
            return self._keys[key] if rows is None else self._keys[key].take(rows), None
        values, failed = self._evaluated(attribute, rows)
        return keys_of(values, scale), failed

    def codes(
        self, attribute: Attribute, domain: Domain, rows: NDArray[Any] | None = None
    ) -> tuple[Rows, Mask | None]:
        """Codes of some rows (None: of all), and which of them could not be evaluated."""
        if attribute.field is not None:
            key = attribute.field, id(domain)
            if key not in self._codes:
                self._codes[key] = self.reader.codes(attribute.field, domain, self.slice)
            return self._codes[key] if rows is None else self._codes[key][rows], None
        keys, failed = self.keys(attribute, domain.scale, rows)
        return domain.codes_of(keys), failed

    def with_constants(
        self, attribute: Attribute, rows: NDArray[Any], constants: dict[int, pa.Array]
    ) -> tuple[pa.Array, Mask | None]:
        """Values of an attribute that holds constants, for rows with their constants."""
        found = self.reader.tuples.evaluate(attribute, rows + self.start, constants)
        if found.reason is not None:
            self.reasons.setdefault(attribute.text, found.reason)
        return found.values, found.failed

    def _evaluated(
        self, attribute: Attribute, rows: NDArray[Any] | None
    ) -> tuple[pa.Array, Mask | None]:
        memo = self._memo.get(attribute.text)
        if memo is None:
            place = np.full(self.rows, -1, np.intp)
            memo = _Memo(place, pa.array([], attribute.type.arrow()), np.empty(0, bool))
            self._memo[attribute.text] = memo
        asked = np.arange(self.rows) if rows is None else rows
        wanted = np.zeros(self.rows, bool)
        wanted[asked] = True
        missing = np.flatnonzero(wanted & (memo.place < 0))
        if len(missing):
            found = self.reader.tuples.evaluate(attribute, missing + self.start)
            if found.reason is not None:
                self.reasons.setdefault(attribute.text, found.reason)
            memo.place[missing] = np.arange(len(missing)) + len(memo.values)
            values = found.values
            if isinstance(values, pa.ChunkedArray):
                values = values.combine_chunks()
            memo.values = pa.concat_arrays([memo.values.cast(values.type), values])
            failed = np.zeros(len(missing), bool) if found.failed is None else found.failed
            memo.failed = np.concatenate([memo.failed, failed])
        at = memo.place[asked]
        failed = memo.failed[at]
        return memo.values.take(pa.array(at)), failed if failed.any() else None
