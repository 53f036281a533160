"""When windows time out, on the reference and on Spark."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from auroral import Network, Order, Ordered, Window
from auroral.reference import Reference

from .networks import Batch, way
from .running import MakeEngine, Run
from .window_cases import CASES


@pytest.mark.parametrize("name", CASES)
def test_a_timeout_starts_when_the_first_tuple_reaches_the_box(name: str) -> None:
    net, case = Network("case"), CASES[name]
    made = case.add(net, "made")
    reference = Reference(net)
    for side, a, at in case.given:
        reference.push(f"made_{side}", (a,), at)
    found = [(tuple(t.row.values()), t.reached_us / 1e6) for t in reference.tuples("made")]
    assert found == case.made
    assert reference.late.get((made.name, "late"), 0) == case.late


@pytest.mark.spark
@pytest.mark.parametrize(("seed", "crashing"), [(1, False), (2, True), (3, True)])
def test_spark_closes_windows_as_the_reference_does(
    make_engine: MakeEngine, seed: int, crashing: bool, tmp_path: Path
) -> None:
    net, names = Network("cases"), [f"case{n}" for n in range(len(CASES))]
    batches: list[tuple[float, Batch]] = []
    for name, case in zip(names, CASES.values(), strict=True):
        case.add(net, name)
        latest = 0.0
        for side, a, at in case.given:
            latest = latest if at is None else at
            row = {"a": a} if at is None else {"a": a, "_at": at}
            batches.append((latest, Batch(f"{name}_{side}", (row,), False)))
    tenths = net.stream("tenths", schema="t double", progress=Ordered("t"))
    for name, size in [("tumbling", 0.1), ("sliding", 0.3)]:
        window = Window(size=size, advance=0.1)
        net.output(name, tenths.aggregate(Order("t"), window, c="collect_list(t)"))
    batches.append((0, Batch("tenths", tuple({"t": n / 10} for n in range(40)), False)))
    batches.sort(key=lambda one: one[0])
    Run(make_engine, net, [batch for _, batch in batches], way(Random(seed), crashing=crashing)).go(
        tmp_path
    )
