"""The operators that a chunk's tuples visit, in order, and what each must know of later ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from auroral.eddy.bitmap import BitmapSelection
from auroral.eddy.filters.grouped import AttributeFilter, QueryBlock

Words = NDArray[np.uint64]
Planes = tuple[tuple[int, Words], ...]

_REMEMBERED = 256


@dataclass(frozen=True)
class Wanting:
    """Queries that matter; of disjunctions over several attributes only while not yet true."""

    asked: BitmapSelection
    planes: Planes

    @property
    def every(self) -> Words:
        """The queries while nothing is decided."""
        return _any(self.asked.mask, *(looked for _, looked in self.planes))


@dataclass(frozen=True)
class Stop:
    """An operator at its place in an order.

    After it those queries matter that look there or have clauses further on. `own` leaves out
    what is further on and concerns none of the operator's queries: that it cannot spare.
    """

    name: str
    filters: tuple[AttributeFilter, ...]
    """None if no query of the block looks there."""
    here: Wanting
    """Queries with clauses to be decided there."""
    after: Wanting
    own: Wanting
    """The same object as `after` if it leaves out nothing."""

    @property
    def computed(self) -> bool:
        """Whether its values have to be computed."""
        return self.filters[0].attribute.field is None


_known: WeakKeyDictionary[QueryBlock, dict[tuple[str, ...], tuple[Stop, ...]]] = WeakKeyDictionary()


def stops(block: QueryBlock, order: tuple[str, ...]) -> tuple[Stop, ...]:
    """The stops of a chunk; cached, because the same orders occur again and again."""
    known = _known.setdefault(block, {})
    if order not in known:
        if len(known) >= _REMEMBERED:
            known.clear()
        known[order] = _stops(block, order)
    return known[order]


def _stops(block: QueryBlock, order: tuple[str, ...]) -> tuple[Stop, ...]:
    none = np.zeros(-(-len(block.ids) // 64), np.uint64)
    mask = none
    looked = [none for _ in block.absent]
    later: list[tuple[Words, Mapping[int, Words]]] = []
    found: list[Stop] = []
    for name in reversed(order):
        filters = block.filters.get(name, ())
        plain = _any(none, *(each.mask for each in filters))
        looks: dict[int, Words] = {}
        for each in filters:
            for plane, (_, look) in each.planes.items():
                looks[plane] = looks.get(plane, none) | look
        mine = _any(plain, *looks.values())
        after = _wanting(mask | mine, {n: look for n, look in enumerate(looked) if look.any()})
        own, own_planes = mine, list[tuple[int, Words]]()
        for filtered, seen in later:
            if (_any(filtered, *seen.values()) & mine).any():
                own = own | filtered
                own_planes += seen.items()
        mask = mask | plain
        looked = [look | looks.get(plane, none) for plane, look in enumerate(looked)]
        alike = not after.planes and np.array_equal(own, after.asked.mask)
        kept = after if alike else Wanting(BitmapSelection.of(own), tuple(own_planes))
        found.append(Stop(name, filters, _wanting(plain, looks), after, kept))
        later.append((plain, looks))
    return tuple(found[::-1])


def _any(*masks: Words) -> Words:
    found: Words = np.bitwise_or.reduce(masks)
    return found


def _wanting(mask: Words, planes: Mapping[int, Words]) -> Wanting:
    return Wanting(BitmapSelection.of(mask), tuple(planes.items()))
