"""The interpreter's work grows with the tuples, not with the groups that wait meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from auroral import Delayed, Network, Order, Ordered, Window
from auroral.reference import Reference
from tests.effort import operations

ORDER = Order("t", by=("g",))
SLACK = Order("t", slack=0, by=("g",))
PREDICATE = Window(advance="g % 2 = 0")

BOXES: dict[str, Callable[[Any, Any], Any]] = {
    "aggregate": lambda a, _: a.aggregate(ORDER, Window(size=10**6), n="count(*)"),
    "sliding": lambda a, _: a.aggregate(SLACK, Window(size=10, advance=5), n="count(*)"),
    "timeout": lambda a, _: a.aggregate(ORDER, Window(size=10**6, timeout=10**6), n="count(*)"),
    "tuple numbers": lambda a, _: a.aggregate(Order("tup#", by=("g",)), Window(size=2), n="sum(t)"),
    "predicate": lambda a, _: a.aggregate(SLACK, PREDICATE, n="count(*)"),
    "predicate by marks": lambda a, _: a.aggregate(ORDER, PREDICATE, n="count(*)"),
    "bsort": lambda a, _: a.bsort(Order("t", slack=3, by=("g",))),
    "bsort by marks": lambda a, _: a.bsort(ORDER),
    "dedup": lambda a, _: a.dedup("g", order=SLACK),
    "dedup by marks": lambda a, _: a.dedup("g", order=ORDER),
    "join": lambda a, b: a.join(b, "left.g = right.g", left=ORDER, right=ORDER, within=3),
    "wait_for": lambda a, b: a.wait_for(b, "held.g = signal.g", timeout=10**6),
    "resample": lambda a, b: a.resample(b, left=ORDER, right=ORDER, within=3, n="count(*)"),
    "resample by slack": lambda a, b: a.resample(b, left=ORDER, right=SLACK, within=3, n="sum(t)"),
}
PROGRESS = {
    "ordered": Ordered("t"),
    "far behind": Delayed("t", 10**6),
    "by group": Delayed("t", 0, by=("g",)),
    "by group with heartbeat": Delayed("t", 0, by=("g",), heartbeat=10**6),
}


CASES = [
    *((box, "far behind") for box in BOXES),
    *((box, how) for box in ("aggregate", "bsort by marks") for how in PROGRESS),
]


@pytest.mark.parametrize(("box", "progress"), CASES)
def test_twice_the_groups_are_twice_the_work(box: str, progress: str) -> None:
    def work(tuples: int) -> int:
        net = Network("effort")
        how = PROGRESS[progress]
        a, b = (net.stream(name, schema="g int, t int", progress=how) for name in ("a", "b"))
        net.output("o", BOXES[box](a, b))
        reference = Reference(net)

        def arrive() -> None:
            for n in range(tuples):
                reference.push("ab"[n % 2], (n, n), at=n)

        return operations(arrive)

    assert work(120) < 2.3 * work(60)
