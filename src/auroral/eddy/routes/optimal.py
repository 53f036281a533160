"""Find the cheapest order of operators, given a function for the cost of any order (pure)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

Order = tuple[str, ...]

_FEW = 5
"""Of so many operators all orders are tried."""
_MANY = 24
"""Operators after so many stay where they are."""


def cheapest(names: Sequence[str], cost: Callable[[Order], float]) -> Order:
    """Try all orders; of many operators, put in one after the other where it costs least.

    The second is as good where operators do not depend on each other. Of equally cheap orders
    the first is taken, as operators are given.

    >>> cheapest("abc", lambda order: order.index("c") - order.index("a"))
    ('c', 'b', 'a')
    """
    if len(names) <= _FEW:
        return min(permutations(names), key=cost)
    order: Order = (names[0],)
    for place, name in enumerate(names[1:_MANY], 1):
        rest = tuple(names[place + 1 :])
        ways = [(*order[:at], name, *order[at:]) for at in range(place, -1, -1)]
        order = min(ways, key=lambda way: cost((*way, *rest)))
    return (*order, *names[_MANY:])
