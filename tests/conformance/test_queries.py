"""Continuous queries, and order enforced: Spark gives what the reference gives."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from auroral import Delayed, Network, Order, Ordered, Window
from auroral.testing import run
from tests.sql.queries import PACKET, PRINTED, STREAMS

from .networks import Batch, Way
from .running import MakeEngine, Run, plain

pytestmark = pytest.mark.spark

PORTS = {1: 10, 2: 20, 3: 30, None: None}
MORE = {
    "last": "SELECT srcIP, count(*), max(ts) FROM M [ROWS 3] WHERE ts <> 2 GROUP BY srcIP",
    "latest": "SELECT M1.ts, M2.ts FROM M1 [ROWS 2], M2 [ROWS 1] WHERE M1.flag = 'SYN'",
    "hosts": "SELECT DISTINCT srcIP FROM M [RANGE 1 min]",
}


def packets(rng: Random, streams: list[str], count: int) -> list[Batch]:
    """Packets between a few hosts, up to five seconds out of order but for some."""
    now, batches = 0, []
    for _ in range(count):
        now += rng.choice([0, 0, 1, 2, 7, 20])
        source, target = rng.choice([(1, 2), (2, 1), (1, 2), (2, 1), (3, None)])
        row = {
            "srcIP": source,
            "destIP": target,
            "srcPort": PORTS[source],
            "destPort": PORTS[target],
            "ts": max(now - rng.choice([0, 0, 0, 3, 8]), 0),
            "flag": rng.choice(["SYN", "SYN_ACK", None]),
        }
        batches.append(Batch(rng.choice(streams), (row,), drain=False))
    return batches


@pytest.mark.parametrize(
    "names",
    [["Q1", "Q4", "Q9", "last"], ["Q2", "Q3", "latest"], ["Q5", "Q6", "hosts"], ["Q7", "Q8"]],
)
def test_queries_give_what_the_reference_gives(
    make_engine: MakeEngine, names: list[str], tmp_path: Path
) -> None:
    rng = Random(str(names))
    texts = {name: {**PRINTED, **MORE}[name] for name in names}
    read = [s for s in STREAMS if re.search(rf"\b{s}\b", " ".join(texts.values()))]
    net = Network("packets")
    for name in read:
        net.stream(name, PACKET, progress=rng.choice([Ordered("ts"), Delayed("ts", 5)]))
    for name, text in texts.items():
        net.query(name, text)
    way = Way(rng.choice([30, None]), True, 1 << 20, 100_000, None, positions=False)
    Run(make_engine, net, packets(rng, read, 70), way).go(tmp_path)


def ordered_network() -> Network:
    """Windows over a union and over a join of streams that promise the same."""
    net = Network("ordered")
    left, right = (
        net.stream(name, schema="k int, n bigint", progress=Delayed("n", 4)) for name in "ab"
    )
    window = Window(size=3)
    net.output("u", left.union(right).aggregate(Order("n", by=("k",)), window, c="count(*)"))
    pairs = left.join(right, "left.k = right.k", left=Order("n"), right=Order("n"), within=1)
    net.output("j", pairs.aggregate(Order("n"), window, c="count(*)", s="sum(right_n)"))
    return net


def test_order_enforced_gives_the_same_windows(make_engine: MakeEngine) -> None:
    rng, now = Random(1), 0
    inputs: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}
    for at in range(60):
        now += rng.choice([0, 1])
        row = {"k": rng.choice([None, 1, 2]), "n": now - rng.choice([0, 0, 1, 2, 4]), "_at": at}
        inputs[rng.choice("ab")].append(row)
    net = ordered_network()
    wanted = run(net, inputs)
    assert not wanted.reference.late
    net.engine = net.engine.model_copy(update={"order": "enforce"})
    arrivals = sorted((row["_at"], name, row) for name, rows in inputs.items() for row in rows)
    with make_engine(net, train=20, clock="arrival") as engine:
        for _, name, row in arrivals:
            engine.enqueue(name, [row])
        engine.finish()
        for name in net.outputs:
            found = plain(engine.dequeue(name).to_pylist())
            assert found
            assert Counter(map(str, found)) == Counter(map(str, plain(wanted[name])))
