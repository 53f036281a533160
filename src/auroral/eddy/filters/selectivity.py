"""How many of the tuples a predicate accepts, estimated from a sample of recent values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from auroral.continuous.sharing.template import Op
from auroral.eddy.bitmap import distinct
from auroral.eddy.filters.domains import Domain
from auroral.eddy.filters.keys import Keys, Scale, keys_of
from auroral.eddy.filters.selections import LISTS, NEGATED, Constants

Fractions = NDArray[np.float64]

PAIR_NS = 20.0
"""What it costs to look at one pair of a tuple and a query."""
BIT_NS = 0.06
"""What it costs to carry one query as a bit of every tuple, with few constants."""
WIDE_BIT_NS = 0.3
"""The same where constants are so many that tables no longer stay in the cache."""
WIDE = 4096
"""How many constants that takes."""
ACCESS_NS = 150.0
"""What it costs to look up a tuple in an access structure, whatever it finds."""

_RANGE = 1 / 3
_BOUNDS = 20_000


class Sample:
    """How recent values of an attribute are distributed; without any, nothing is known."""

    def __init__(self, values: pa.Array | None, scale: Scale):
        self._domain: Domain | None = None
        self._ordered = scale != "bytes"
        if values is not None and len(values):
            keys = keys_of(values, scale)
            self._size = len(keys)
            self._domain = Domain(scale, keys, True)
            regions = self._domain.regions_of(keys)
            counts = np.bincount(regions, minlength=self._domain.regions)
            self._below = np.concatenate([[0], np.cumsum(counts)])

    def fraction(self, op: Op, constants: Constants | None) -> Fractions:
        """For each query the fraction of tuples that satisfy `op` and its constant."""
        if constants is None:
            return np.array([0.01 if op == "null" else 1.0])
        if op in NEGATED:
            found = 1 - self.fraction(NEGATED[op], constants)
        elif op in LISTS:
            found = self._lists(constants)
        elif op == "prefix":
            assert constants.above is not None
            found = self.between(constants.keys, constants.above)
        elif op == "=":
            found = self._equal(constants.keys)
        elif op in (">", ">="):
            found = self.between(constants.keys, None)
        else:
            found = self.between(None, constants.keys)
        return np.where(constants.never, 0.0, found)

    def between(self, low: Keys | None, high: Keys | None) -> Fractions:
        """For each query the fraction that lies between its bounds; never quite none."""
        size = len(low if low is not None else high)  # type: ignore[arg-type]
        if self._domain is None:
            if low is None or high is None:
                return np.full(size, _RANGE)
            return _apart(low, high) if self._ordered else np.full(size, _RANGE / 2)
        domain = self._domain
        first = np.zeros(size, np.intp) if low is None else domain.regions_of(low)
        last = np.full(size, domain.null)
        if high is not None:
            last = domain.regions_of(high)
            last = np.where(last == domain.null, domain.null, last + 1)
        count = np.maximum(self._below[np.maximum(first, last)] - self._below[first], 0)
        return np.asarray((count + 0.5) / (self._size + 1), np.float64)

    def _equal(self, keys: Keys) -> Fractions:
        if self._domain is None:
            # The constants themselves tell how many values there are.
            return np.full(len(keys), 1 / max(2, variety(keys)))
        regions = self._domain.regions_of(keys)
        count = np.where(regions & 1, self._below[regions + 1] - self._below[regions], 0)
        return np.asarray((count + 0.5) / (self._size + 1), np.float64)

    def _lists(self, constants: Constants) -> Fractions:
        assert constants.offsets is not None
        sums = np.concatenate([[0.0], np.cumsum(self._equal(constants.keys))])
        found = sums[constants.offsets[1:]] - sums[constants.offsets[:-1]]
        return np.asarray(np.minimum(found, 1.0), np.float64)


def _apart(low: Keys, high: Keys) -> Fractions:
    """For each range the fraction of some bounds that it holds: many that hold few are narrow."""
    bounds = np.concatenate([low.data, high.data])
    bounds = np.sort(bounds[:: -(-len(bounds) // _BOUNDS)])
    below = np.searchsorted(bounds, low.data, "left")
    held = np.searchsorted(bounds, high.data, "right") - below
    return np.asarray(np.maximum(held, 0.5) / (len(bounds) + 1), np.float64)


def variety(keys: Keys) -> int:
    """How many different constants there are."""
    return len(distinct(keys.data))


def bit_cost(constants: int) -> float:
    """The cost of one more query as a bit, by how many constants its attribute has, in ns."""
    return WIDE_BIT_NS if constants > WIDE else BIT_NS


def may_pay(queries: int) -> bool:
    """Whether so many queries are enough for an access predicate at all."""
    return queries * WIDE_BIT_NS > ACCESS_NS


def pays(fractions: Fractions, constants: int) -> NDArray[np.bool_]:
    """Which queries are better found by an access predicate that accepts those fractions.

    None of them if they are so few that looking up costs more than their bits.
    """
    bit = bit_cost(constants)
    cheap = fractions * PAIR_NS < bit
    saved = float((bit - fractions[cheap] * PAIR_NS).sum())
    return cheap if saved > ACCESS_NS else np.zeros(len(fractions), bool)
