"""Queries filed under constants, so that a value leads to the queries it may satisfy.

The regions of a domain have lists of queries: of an equality the region that is its constant, of
a range those it overlaps. Within a list queries may be ordered by a second predicate, so that
those that satisfy both are one slice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auroral.continuous.sharing.template import Attribute, Op
from auroral.eddy.filters.domains import Domain
from auroral.eddy.filters.keys import Keys, Scale
from auroral.eddy.filters.portion import Portion
from auroral.eddy.filters.residue import PAIRS
from auroral.eddy.filters.selections import Constants
from auroral.eddy.filters.tally import At

_CELLS = 1 << 16
"""Into how many cells the domain of ranges is cut, at most."""
_ENTRIES = 4
"""So many lists may an average range be in."""


@dataclass(frozen=True)
class Fused:
    """The predicate that orders the queries of a list: `attribute op constant`."""

    attribute: Attribute
    scale: Scale
    op: Op
    constants: NDArray[np.int64]
    """One for each entry, ascending within a list."""

    def narrow(self, portion: Portion, rows: At, low: At, high: At) -> tuple[At, At, At]:
        """The slices of lists that satisfy it, and the rows they are of."""
        keys, _ = portion.keys(self.attribute, self.scale, rows)
        if keys.nulls is not None:
            there = np.flatnonzero(~keys.nulls)
            keys, rows, low, high = keys.take(there), rows[there], low[there], high[there]
        at = _bisect(self.constants, low, high, keys.data, self.op in (">=", "<"))
        return (rows, low, at) if self.op in (">", ">=") else (rows, at, high)


@dataclass(frozen=True)
class Arm:
    """The lists of one attribute; with no domain there is but one list, for all values."""

    attribute: Attribute
    domain: Domain | None
    starts: NDArray[np.int32]
    """Where the list of each region begins, and the end of the last."""
    queries: NDArray[np.int32] | None
    """The query of each entry; None if entry n is query n."""
    fused: Fused | None

    @property
    def name(self) -> str:
        """The name of the operator."""
        return self.attribute.text

    def candidates(self, portion: Portion) -> Iterator[tuple[At, At]]:
        """Candidate pairs of rows and queries, in portions of limited size."""
        if self.domain is None:
            rows = np.arange(portion.rows)
            low = np.zeros(portion.rows, np.intp)
            high = np.full(portion.rows, self.starts[-1], np.intp)
        else:
            codes, _ = portion.codes(self.attribute, self.domain)
            regions = self.domain.decoded(codes)
            low = self.starts[regions].astype(np.intp)
            high = self.starts[1:][regions].astype(np.intp)
            rows = np.flatnonzero(high > low)
            low, high = low[rows], high[rows]
        if self.fused is not None:
            rows, low, high = self.fused.narrow(portion, rows, low, high)
        yield from self._pairs(rows, low, high)

    def _pairs(self, rows: At, low: At, high: At) -> Iterator[tuple[At, At]]:
        sizes = high - low
        some = np.flatnonzero(sizes > 0)
        rows, low, sizes = rows[some], low[some], sizes[some]
        ends = np.cumsum(sizes)
        start = 0
        while start < len(rows):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + PAIRS, side="right")))
            part = slice(start, stop)
            first = low[part] - (ends[part] - sizes[part] - before)
            entry = np.arange(int(ends[stop - 1]) - before) + np.repeat(first, sizes[part])
            queries = entry if self.queries is None else self.queries[entry].astype(np.intp)
            yield np.repeat(rows[part], sizes[part]), queries
            start = stop


def lists(
    region: NDArray[np.intp], owner: NDArray[np.intp], regions: int, second: Any | None
) -> tuple[NDArray[np.int32], NDArray[np.intp], NDArray[np.intp]]:
    """File entries under regions: where lists begin, the order of entries, and their queries."""
    order = np.lexsort((region,) if second is None else (second, region))
    starts = np.zeros(regions + 1, np.int64)
    np.cumsum(np.bincount(region, minlength=regions), out=starts[1:])
    return starts.astype(np.int32), order, owner[order]


def filed_equal(constants: Constants, scale: Scale) -> tuple[Domain, At, At]:
    """The domain of equalities, and for each entry its region and its query."""
    if constants.offsets is None:
        owner = np.flatnonzero(~constants.never)
        keys = constants.keys.take(owner)
    else:
        alive = np.flatnonzero(~constants.never)
        mine, element, _ = constants.elements(alive)
        owner, keys = alive[mine], constants.keys.take(element)
    domain = Domain(scale, keys, False)
    return domain, 2 * domain.places(keys) + 1, owner


def filed_ranges(low: Constants, high: Constants, scale: Scale) -> tuple[Domain, At, At]:
    """A grid such that ranges overlap few of its cells, and the entries as above."""
    alive = np.flatnonzero(~(low.never | high.never))
    lows, highs = low.keys.take(alive), high.keys.take(alive)
    bounds = np.sort(np.concatenate([lows.data, highs.data]))
    cells = min(_CELLS, max(1, len(bounds)))
    while True:
        at = np.linspace(0, max(len(bounds) - 1, 0), cells).astype(np.intp)
        domain = Domain(scale, Keys(bounds[at] if len(bounds) else bounds, None), True)
        first, last = domain.regions_of(lows), domain.regions_of(highs)
        sizes = np.maximum(last - first + 1, 0)
        if cells == 1 or int(sizes.sum()) <= _ENTRIES * max(len(alive), 1):
            break
        cells = max(1, cells // 2)
    owner = np.repeat(alive, sizes)
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return domain, np.repeat(first, sizes) + within, owner


def _bisect(
    keys: NDArray[np.int64], low: At, high: At, values: NDArray[np.int64], right: bool
) -> At:
    """In each (ascending) slice of keys where a value belongs; right: after its equals."""
    longest = int((high - low).max(initial=0))
    for _ in range(longest.bit_length()):
        middle = (low + high) >> 1
        found = keys.take(middle, mode="clip")
        before = (found <= values) if right else (found < values)
        before &= low < high
        low = np.where(before, middle + 1, low)
        high = np.where(before, high, middle)
    return low
