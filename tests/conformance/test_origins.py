"""A stream that several sources feed: each has a mark, and cuts and crashes change nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from auroral import Delayed, Network, Order, Window
from auroral.engine import Engine
from auroral.engine.ingest.declared_sources import interleaved
from auroral.errors import UsageError
from auroral.io.chunk import Chunk
from auroral.io.sources.named import NamedSource
from auroral.testing import Collector, ManualClock, Results, ScriptedSource, run

from . import sparkless
from .running import Crash, Faults, MakeEngine

Rows = list[dict[str, Any]]


def network(delay: int = 2) -> Network:
    net = Network("parts")
    s = net.stream("s", "k int, n bigint", progress=Delayed("n", delay))
    wide = s.aggregate(order=Order("n", by=["k"]), window=Window(size=5), c="count(*)", name="w")
    net.output("wide", wide)
    net.output("late", "w.late")
    net.output("pairs", s.join(s.filter("k = 1"), left=Order("n"), right=Order("n"), within=1))
    return net


class Cut(ScriptedSource):
    """Rows in chunks of random sizes; they come without a pause, as of a file."""

    def __init__(self, net: Network, rows: Rows, rng: Random):
        super().__init__(net, "s", rows)
        self._rng = rng

    def poll(self, limit: int) -> Chunk | None:
        return super().poll(min(limit, self._rng.randint(1, 7)))


def partitions(rng: Random, timed: bool) -> dict[str, Rows]:
    """Some partitions, each in order but for what the delay allows, far apart from each other."""
    found: dict[str, Rows] = {}
    for name in "abcd"[: rng.randint(1, 4)]:
        n, rows = rng.choice([0, 0, 30]), list[dict[str, Any]]()
        for i in range(rng.randint(0, 25)):
            n += rng.choice([0, 1, 1, 4])
            at = {"_at": i * rng.choice([1, 3])} if timed else {}
            if rows and rng.random() < 0.1:
                rows.append({"_punctuation": n - 2, **at})
            value = None if rng.random() < 0.05 else n - rng.choice([0, 0, 1, 2])
            rows.append({"k": rng.randint(0, 2), "n": value, **at})
        rows.sort(key=lambda row: row.get("_at", 0))
        found[name] = rows
    return found


@pytest.mark.parametrize("seed", range(30))
def test_cuts_and_crashes_change_nothing(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    net, timed = network(), rng.random() < 0.3
    parts = partitions(rng, timed)
    expected = run(net, {"s": parts}, hold=True)
    sinks = {name: Collector() for name in net.outputs}
    faults = Faults(frozenset(rng.sample(range(60), rng.choice([0, 2, 6]))))
    train = rng.randint(1, 40)
    while True:
        with contextlib.suppress(Crash), attempt(net, parts, rng, sinks, tmp_path, faults, train):
            break
    found = {name: sink.rows for name, sink in sinks.items()}
    assert found == dict(expected)
    if not timed:
        require_nothing_late(expected)


@contextlib.contextmanager
def attempt(
    net: Network,
    parts: dict[str, Rows],
    rng: Random,
    sinks: dict[str, Collector],
    state: Path,
    faults: Faults,
    train: int,
) -> Iterator[None]:
    with make(net, parts, rng, sinks, state=state, fault=faults, train=train) as engine:
        engine.drain()
        yield


@contextlib.contextmanager
def make(
    net: Network, parts: dict[str, Rows], rng: Random, sinks: dict[str, Collector], **options: Any
) -> Iterator[Engine]:
    engine = Engine(
        net, executor=sparkless.InProcessExecutor(), background=False, clock="arrival", **options
    )
    for name, rows in parts.items():
        engine.bind_source(Cut(net, rows, rng), name=name)
    for output, sink in sinks.items():
        engine.bind_sink(output, sink)
    try:
        engine.start()
        yield engine
    except Crash:
        engine._started = False
        engine._store.close()
        raise
    engine.shutdown()


def require_nothing_late(results: Results) -> None:
    """Partitions that keep their delay lose nothing but NULL, however far apart they are."""
    assert [row for row in results["late"] if row["n"] is not None] == []


def test_partitions_far_apart_lose_nothing() -> None:
    net = network(delay=0)
    rows = {p: [{"k": 1, "n": n} for n in range(first, first + 20)] for p, first in PARTS.items()}
    together = run(net, {"s": rows})
    assert together["late"] == []
    assert sum(row["c"] for row in together["wide"]) == 60
    alone = run(net, {"s": [row for part in rows.values() for row in part]})
    assert len(alone["late"]) > 0, "one mark for all loses what comes later"


PARTS = {"a": 40, "b": 20, "c": 0}


def test_one_source_that_has_ended_is_not_waited_for() -> None:
    net = network(delay=0)
    parts = {"a": [{"k": 1, "n": 1}], "b": [{"k": 1, "n": n} for n in (3, 9, 20)]}
    found = run(net, {"s": parts}, hold=True)
    assert [(row["n"], row["c"]) for row in found["wide"]] == [(0, 2), (5, 1)]


def test_an_idle_source_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    net, clock = network(delay=0), ManualClock()
    quiet: list[Any] = [{"k": 1, "n": 1}, *[None] * 8, {"k": 2, "n": 7}, {"k": 1, "n": 50}]
    busy: list[Any] = [{"k": 1, "n": n} for n in (2, 10, 20)]
    engine = Engine(net, executor=sparkless.InProcessExecutor(), background=False)
    schema = net.streams["s"].schema_.arrow()
    for name, rows in (("quiet", quiet), ("busy", [*busy, *[None] * 20])):
        source = ScriptedSource(net, "s", rows)
        engine.bind_source(NamedSource(source, name, schema, idle_s=30, now_s=lambda: clock.now_s))
    with engine:
        for _ in range(6):
            engine._loop.work()
        assert engine.dequeue("wide").num_rows == 0
        clock.advance(31)
        for _ in range(2):
            engine._loop.work()
        assert [row["n"] for row in engine.dequeue("wide").to_pylist()] == [0, 10]
        for _ in range(12):
            engine._loop.work()
        late = [row["n"] for row in engine.dequeue("late").to_pylist()]
        assert late == [7], "who comes back may be late"


def test_names_of_sources_differ() -> None:
    net = network()
    engine = Engine(net)
    engine.bind_source(ScriptedSource(net, "s", []), name="a")
    engine.bind_source(ScriptedSource(net, "s", []), name="a")
    with pytest.raises(UsageError, match="two sources are called s/a"):
        interleaved(net, engine._endpoints.sources, None)


@pytest.mark.spark
def test_several_files_feed_a_stream_on_spark(make_engine: MakeEngine, tmp_path: Path) -> None:
    net = network(delay=0)
    for part, first in PARTS.items():
        lines = "".join(f"1,{n}\n" for n in range(first, first + 20))
        (tmp_path / f"{part}.csv").write_text("k,n\n" + lines)
    files = [{"path": str(tmp_path / f"{part}.csv"), "name": part} for part in PARTS]
    document = net.document()
    document["streams"]["s"]["source"] = files
    declared = Network.parse(document)
    rows = {p: [{"k": 1, "n": n} for n in range(first, first + 20)] for p, first in PARTS.items()}
    expected = run(net, {"s": rows})
    with make_engine(declared, clock="arrival", train=7) as engine:
        engine.finish()
        assert engine.dequeue("wide").to_pylist() == expected["wide"]
        assert engine.dequeue("pairs").to_pylist() == expected["pairs"]
        assert engine.stats()["boxes"]["w"]["late"] == {}
