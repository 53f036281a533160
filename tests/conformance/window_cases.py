"""Windows whose timeouts start when tuples reach them, after boxes that hold tuples back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from auroral import Network, Order, Ordered, Window
from auroral.network.arc import Arc

Rows = Sequence[tuple[str, int, float | None]]
"""Stream, value, time of arrival if it has one."""


@dataclass(frozen=True)
class WindowCase:
    """A box over streams `left` and `right` of integers, what arrives, what comes out and when."""

    build: Callable[[Arc, Arc], Arc]
    given: Rows
    made: list[tuple[tuple[Any, ...], float]]
    late: int = 0

    def add(self, net: Network, name: str) -> Arc:
        """Put streams and boxes of its own, and an output, into a network."""
        sides = (
            net.stream(f"{name}_{side}", schema="a int", progress=Ordered("a"))
            for side in ("left", "right")
        )
        arc = self.build(*sides)
        net.output(name, arc)
        return arc


def _delayed(left: Arc) -> Arc:
    """Tuples reach what is behind this when the next one has come."""
    return left.bsort(Order("a", slack=1))


SLACK = Order("a", slack=0)
LATER = [("left", a, at) for a, at in [(0, 0), (1, 20), (2, 21), (30, 22), (31, 23)]]

CASES = {
    "windows of windows": WindowCase(
        lambda left, _: left.aggregate(Order("a"), Window(size=10), n="count(*)").aggregate(
            Order("tup#"), Window(size=2, advance=1, timeout=5), n="count(*)"
        ),
        [("left", a, at) for a, at in [(0, 0), (10, 10), (11, 12), (20, 14), (21, 20)]],
        [((1, 2), 14), ((2, 1), 20)],
    ),
    "sorted": WindowCase(
        lambda left, _: _delayed(left).aggregate(SLACK, Window(size=10, timeout=5), n="count(*)"),
        LATER,
        [((0, 3), 23)],
    ),
    "arrivals without a time": WindowCase(
        lambda left, _: _delayed(left).aggregate(SLACK, Window(size=10, timeout=5), n="count(*)"),
        [
            *(("left", 0, 0), ("left", 1, 20), ("left", 2, None), ("left", 30, None)),
            *(("left", 31, 23), ("left", 32, 30)),
        ],
        [((0, 3), 23), ((30, 1), 30)],
        late=1,
    ),
    "aligned": WindowCase(
        lambda left, _: _delayed(left).aggregate(
            Order("a", slack=1), Window(size=10, align="first", timeout=5), n="count(*)"
        ),
        [*LATER, ("left", 32, 24)],
        [((0, 3), 24)],
    ),
    "opened by a predicate": WindowCase(
        lambda left, _: _delayed(left).aggregate(
            SLACK, Window(advance="a % 10 = 0", timeout=5), n="count(*)"
        ),
        LATER,
        [((0, 3), 23)],
    ),
    "opened by a predicate, times out": WindowCase(
        lambda left, _: _delayed(left).aggregate(
            SLACK, Window(advance="a % 10 = 0", timeout=1.5), n="count(*)"
        ),
        LATER,
        [((0, 2), 22)],
        late=1,
    ),
    "joined": WindowCase(
        lambda left, right: left.join(
            right, left=Order("a"), right=Order("a"), within=100
        ).aggregate(Order("tup#"), Window(size=2, timeout=5), n="count(*)"),
        [("left", 0, 0), ("right", 1, 20), ("right", 2, 24), ("right", 3, 30), ("right", 4, 36)],
        [((1, 2), 24), ((3, 1), 36)],
        late=1,
    ),
}
