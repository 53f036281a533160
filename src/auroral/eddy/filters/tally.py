"""Count where the tuples of a chunk go, and which predicates fail on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auroral.eddy.bitmap import Ids
from auroral.eddy.filters.keys import Mask
from auroral.eddy.routes.routing import Visit

At = NDArray[np.intp]
Counts = tuple[Ids, NDArray[np.int64]]
"""Queries, and how many tuples satisfy each."""
Errors = dict[tuple[str, int], tuple[int, str]]
"""By kind and query on how many tuples a predicate could not be evaluated, and why on one."""


_EVERY = 13
"""Of many tuples one in so many is looked at; a prime, as streams like to go round in circles."""
_MANY = 4096


class VisitTally:
    """Which tuples of a chunk each operator was sent, and which of them it returned.

    Blocks of queries are filtered one after the other; a tuple is counted if any block sends it. If
    there are many tuples, a sample stands for all.
    """

    def __init__(self, rows: int, order: Sequence[str], seconds: dict[str, float]):
        self.order = order
        self.seconds = seconds
        self.sample = slice(0, rows, _EVERY if rows >= _MANY else 1)
        """The tuples of which visits need to be told; of others they may be."""
        self._rows = rows
        self._routed = {name: np.zeros(rows, bool) for name in order}
        self._returned = {name: np.zeros(rows, bool) for name in order}
        self._all_routed = dict.fromkeys(order, rows == 0)
        self._all_returned = dict.fromkeys(order, rows == 0)

    def all_routed(self, name: str) -> bool:
        """Whether it is settled that every tuple goes there."""
        return self._all_routed[name]

    def all_returned(self, name: str) -> bool:
        """Whether it is settled that no tuple ends there."""
        return self._all_returned[name]

    def routed(self, name: str, rows: At | None) -> None:
        """Tuples (None: all) are sent to an operator."""
        self._all_routed[name] |= self._mark(self._routed[name], rows)

    def returned(self, name: str, rows: At | None) -> None:
        """Tuples (None: all) have somewhere to go or someone to satisfy after an operator."""
        self._all_returned[name] |= self._mark(self._returned[name], rows)

    def spend(self, name: str, seconds: float) -> None:
        """Add the time that an operator took."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def visits(self) -> dict[str, tuple[int, int]]:
        """Of each operator how many tuples it was sent and how many it returned."""
        found = {}
        for name, routed in self._routed.items():
            mine = routed[self.sample]
            found[name] = self._count(mine), self._count(mine & self._returned[name][self.sample])
        return found

    def _count(self, flags: Mask) -> int:
        return round(np.count_nonzero(flags) * self._rows / max(len(flags), 1))

    def _mark(self, flags: Mask, rows: At | None) -> bool:
        """Mark tuples; whether all that need to be are marked."""
        if rows is None:
            flags[:] = True
            return True
        flags[rows] = True
        mine = flags[self.sample]
        return len(rows) * 2 > len(mine) and bool(mine.all())


def add_visits(
    visits: dict[str, Visit], found: dict[str, tuple[int, int]], seconds: dict[str, float]
) -> None:
    """Add the visits of a chunk to those of a train."""
    for name, (routed, returned) in found.items():
        so_far = visits.get(name, Visit(0, 0, 0.0))
        visits[name] = Visit(
            so_far.routed + routed, so_far.returned + returned, seconds.get(name, 0.0)
        )


def add_errors(
    errors: Errors, kind: str, ids: Ids, counts: NDArray[np.integer[Any]], reason: str
) -> None:
    """Count tuples on which a predicate of a query failed."""
    for query, tuples in zip(ids.tolist(), counts.tolist(), strict=True):
        if tuples:
            so_far, known = errors.get((kind, query), (0, reason))
            errors[kind, query] = so_far + tuples, known
