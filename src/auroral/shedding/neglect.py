"""Which outputs the scheduler hardly serves; the load shedder leaves them alone [1 §4.5] (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

_PERIODS = 8
"""For so many periods tuples must have waited without a step …"""
_TURNS = 5
"""… while some other superbox had so many."""


class NeglectedSuperboxes:
    """Superboxes that have tuples waiting and get no turn while others get several.

    Tuples that are dropped in front of them save nothing.

    >>> neglected = NeglectedSuperboxes()
    >>> for _ in range(8):
    ...     neglected.note({"far": 1}, waiting=["far", "near"], under_way=[])
    >>> neglected.found
    frozenset({'near'})
    >>> neglected.note({"near": 1}, waiting=["far", "near"], under_way=["far"])
    >>> neglected.found
    frozenset()
    """

    def __init__(self) -> None:
        self._turns = Counter[str]()
        self._since: dict[str, tuple[int, Counter[str]]] = {}
        """By superbox that waits, for how many periods, and which turns there had been before."""

    def note(
        self, steps: Mapping[str, int], *, waiting: Collection[str], under_way: Collection[str]
    ) -> None:
        """In a period superboxes have ended so many steps; for some, tuples wait at its end."""
        before = Counter(self._turns)
        self._turns.update(steps)
        unserved = (n for n in waiting if not steps.get(n) and n not in under_way)
        found = {name: self._since.get(name, (0, before)) for name in unserved}
        self._since = {name: (periods + 1, turns) for name, (periods, turns) in found.items()}

    def forget(self) -> None:
        """Begin anew: the network is another one, or steps are slow for another reason."""
        self._turns.clear()
        self._since.clear()

    @property
    def found(self) -> frozenset[str]:
        """The superboxes that are neglected now."""
        return frozenset(
            name
            for name, (periods, before) in self._since.items()
            if periods >= _PERIODS
            and any(turns - before[other] >= _TURNS for other, turns in self._turns.items())
        )
