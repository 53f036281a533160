"""Joins, resamples and sorts on Spark: negative ends, timeouts, arrival numbers, both sides."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from auroral import Delayed, Network, Order

from .events import EVENT, Events
from .networks import way
from .running import MakeEngine, Run
from .test_stateful import set_out

pytestmark = pytest.mark.spark


def network() -> Network:
    net = Network("cases")
    left, right = (net.stream(name, EVENT, progress=Delayed("n", 4)) for name in "ab")
    values: dict[str, Any] = {"left": Order("n"), "right": Order("n")}
    numbers: dict[str, Any] = {"left": Order("tup#", by=("k",)), "right": Order("tup#", by=("g",))}
    spans: dict[str, Any] = {"left": Order("t"), "right": Order("t")}
    made = {
        "ahead": left.join(right, "left.k = right.k", **values, range=(-1, 5), name="ahead"),
        "behind": left.join(right, **spans, range=("6 s", "-1 s"), timeout=6, name="behind"),
        "brief": left.join(right, "left.g = right.g", **values, within=3, timeout=2, name="brief"),
        "rows": left.join(right, rows=(3, 2), timeout=2.5, name="rows"),
        "numbered": left.join(right, "left.n >= right.n", **numbers, within=1, name="numbered"),
        "sorted": left.bsort(Order("tup#", slack=2, by=("k",)), name="sorted"),
        "passed": left.bsort(Order("tup#"), name="passed"),
        "near": left.resample(
            right, **values, within=2, timeout=6, name="near",
            err="avg(right.f) - left.f", d="sum(right.x * left.k)", g="left.g", cnt="count(*)",
        ),
        "after": left.resample(
            right, left=Order("tup#"), right=Order("tup#", by=("k",)), within=1, name="after",
            most="max(n - left.n)",
        ),
    }  # fmt: skip
    for name, arc in made.items():
        net.output(f"o_{name}", arc)
    return net


@pytest.mark.parametrize("seed", [1, 2])
def test_the_cases_give_what_the_reference_gives(
    make_engine: MakeEngine, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, net = Random(seed), network()
    batches = Events(rng, net).script(30, drains=0.1)
    chosen = way(rng, crashing=seed == 2)
    set_out(monkeypatch, chosen)
    Run(make_engine, net, batches, chosen).go(tmp_path)
