"""Queues in memory: the most urgent ones, within the budget, and never to be seen in results."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import auroral as au
import auroral.engine.runtime.train as train_module
import auroral.storage.store as store_module
from auroral import Network
from auroral.engine import Engine, parts
from auroral.engine.ingest import ingest
from auroral.engine.runtime import queue_memory
from auroral.engine.runtime.queue_memory import QueueMemory
from auroral.engine.runtime.waiting import WaitingTuples
from auroral.errors import NetworkError
from auroral.scheduling.queues import BoxQueue
from auroral.scheduling.residency import ResidencyPlanner
from tests.conformance import sparkless

_ROWS = 500
"""Of a batch, which becomes a segment at once; it takes about 500 kB."""
_PADDING = "x" * 900
_RESTLESS = partial(ResidencyPlanner, least_stay_s=0.0, loads_per_s=1e6)


@pytest.fixture(autouse=True)
def no_other_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only queues are in memory, segments may move at once, and each batch becomes one."""
    monkeypatch.setattr(ingest, "LARGE_ROWS", _ROWS)
    monkeypatch.setattr(store_module, "_CACHE_BYTES", 0)
    monkeypatch.setattr(parts, "QueueMemory", partial(QueueMemory, planner=_RESTLESS))


def network(memory: int | str = "1 MB", **options: Any) -> Network:
    net = Network("queues")
    for name, until in ("soon", 0.5), ("late", 100.0):
        stream = net.stream(f"{name}_in", "a int, padding string")
        graph = au.QoS(latency=[(0, 1), (until, 1), (2 * until, 0)])
        net.output(name, stream.filter("a % 10 = 0", name=f"{name}_box"), qos=graph)
    net.engine = au.EngineOptions(memory=memory, **options)
    return net


def feed(engine: Engine, batches: int = 4) -> None:
    """Fill both queues."""
    for number in range(batches):
        for stream in ("late_in", "soon_in"):
            values = pa.array(range(number * _ROWS, (number + 1) * _ROWS), pa.int32())
            padding = pa.array([_PADDING] * _ROWS)
            engine.enqueue(stream, pa.table({"a": values, "padding": padding}))


def expected(batches: int = 4) -> list[int]:
    return list(range(0, batches * _ROWS, 10))


def results(engine: Engine) -> dict[str, list[int]]:
    return {name: engine.dequeue(name)["a"].to_pylist() for name in ("soon", "late")}


def test_a_budget_that_is_too_small_evicts_and_changes_no_result() -> None:
    used = []
    with sparkless.make_engine(network(), train=80) as engine:
        feed(engine)
        while engine._loop.work():
            used.append(engine.stats()["memory"]["used"])
        assert results(engine) == {"soon": expected(), "late": expected()}
        memory = engine.stats()["memory"]
    assert memory["budget"] == 1 << 20
    assert 0 < max(used) <= memory["budget"]
    assert memory["refusals"] > 0
    assert memory["loads"] > 0
    assert memory["memory_bytes"] > 0


@pytest.mark.parametrize(("urgent", "other"), [("soon", "late"), ("late", "soon")])
def test_what_is_more_urgent_is_in_memory(urgent: str, other: str) -> None:
    with sparkless.make_engine(network(), train=80) as engine:
        feed(engine)
        memory = engine._context.memory
        assert memory is not None

        def resident(priorities: Mapping[str, float], next_: Sequence[str] = ()) -> list[float]:
            queues = {name: BoxQueue(name, priority=p) for name, p in priorities.items()}
            for _ in range(3):
                memory.tend(queues, next_, ())
            boxes = engine.stats()["boxes"]
            return [boxes[f"{name}_box"]["resident"] for name in (urgent, other)]

        assert resident({f"{urgent}_box": 9.0, f"{other}_box": 1.0}) == pytest.approx(
            [0.5, 0.0], abs=0.01
        )
        assert resident({f"{urgent}_box": 1.0, f"{other}_box": 9.0}) == pytest.approx(
            [0.0, 0.5], abs=0.01
        )
        planned = [f"{urgent}_box"]
        assert resident({f"{other}_box": 9.0}, planned) == pytest.approx([0.5, 0.0], abs=0.01)
        assert engine.stats()["memory"]["evictions"] >= 4
        engine.drain()
        assert results(engine) == {"soon": expected(), "late": expected()}


def test_the_oldest_queues_come_first_while_superboxes_take_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with sparkless.make_engine(network(scheduler="rr"), train=80) as engine:
        stepper = engine._loop.execution.stepper
        scheduler = stepper.scheduler
        assert scheduler is not None
        assert scheduler.in_turn()
        feed(engine, 1)  # the tuples of `late_in` come first
        engine._ingest.seal()
        at_s = [time.monotonic() + 10.0]
        scheduler.now_s = lambda: at_s[0]
        looked: list[str] = []
        real = stepper.waiting_tuples

        def waiting(name: str) -> WaitingTuples:
            looked.append(name)
            return real(name)

        monkeypatch.setattr(stepper, "waiting_tuples", waiting)
        engine._loop.work()
        boxes = engine.stats()["boxes"]
        assert boxes["late_box"]["priority"] > boxes["soon_box"]["priority"] > 9.0
        looked.clear()
        engine._loop.work()
        assert looked == [], "once in a while is enough"
        engine.drain()
        at_s[0] += 100.0
        engine.enqueue("late_in", [(1, "x")])
        engine.drain()
        assert engine.stats()["boxes"]["soon_box"]["priority"] is None
        assert results(engine) == {"soon": expected(1), "late": expected(1)}


def test_the_scheduler_sees_how_much_of_a_queue_is_in_memory() -> None:
    seen = set()
    with sparkless.make_engine(network(), train=80) as engine:
        scheduler = engine._loop.execution.stepper.scheduler
        assert scheduler is not None
        feed(engine)
        while engine._loop.work():
            seen |= {q.resident for q in scheduler.table.queues.values() if q.queued}
    assert min(seen) < 0.5 < max(seen)


def test_enough_memory_reads_nothing_from_the_disk() -> None:
    with sparkless.make_engine(network("1 GB"), train=80) as engine:
        feed(engine)
        assert engine.stats()["boxes"]["soon_box"]["resident"] == 1.0
        engine.drain()
        memory = engine.stats()["memory"]
        assert results(engine) == {"soon": expected(), "late": expected()}
    assert (memory["disk_bytes"], memory["evictions"], memory["refusals"]) == (0, 0, 0)
    assert memory["memory_bytes"] > 0


def test_queues_are_loaded_again_after_a_restart(tmp_path: Path) -> None:
    with sparkless.make_engine(network("1 GB"), state=tmp_path, train=80) as engine:
        feed(engine)
        engine._loop.work()
    with sparkless.make_engine(network("1 GB"), state=tmp_path, train=80) as engine:
        assert engine.stats()["boxes"]["late_box"]["resident"] == 0.0
        engine.drain()
        memory = engine.stats()["memory"]
        assert results(engine) == {"soon": expected(), "late": expected()}
    assert memory["loads"] > 0
    assert memory["memory_bytes"] > memory["disk_bytes"] > 0


def test_a_segment_may_be_evicted_while_a_step_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = train_module.cut
    evicted = []
    with sparkless.make_engine(network("1 GB"), train=80) as engine:
        resident = engine._store.resident
        assert resident is not None

        def cut(table: pa.Table, first: int, last: int) -> pa.Table:
            for log in ("soon_in", "late_in"):
                for segment in engine._store.segments(log):
                    if segment.file and segment.file in resident:
                        resident.drop(segment.file)
                        evicted.append(segment.file)
            return real(table, first, last)

        monkeypatch.setattr(train_module, "cut", cut)
        feed(engine)
        engine.drain()
        assert results(engine) == {"soon": expected(), "late": expected()}
    assert evicted


def test_segments_are_loaded_by_a_thread_while_steps_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_memory, "LOOK_EVERY_S", 0.0)
    with sparkless.make_engine(network(), train=80, background=True) as engine:
        feed(engine)
        engine.drain()
        assert results(engine) == {"soon": expected(), "late": expected()}
        memory = engine.stats()["memory"]
        assert memory["used"] <= memory["budget"]
        assert memory["memory_bytes"] > 0


def test_a_train_larger_than_the_budget_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING, "auroral"),
        sparkless.make_engine(network(scheduler="rr")) as engine,
    ):
        for _ in range(2):
            feed(engine, 14)
            engine.drain()
        larger = engine.stats()["memory"]["larger_trains"]
    told = [r.getMessage() for r in caplog.records if "TRAIN_EXCEEDS_MEMORY" in r.getMessage()]
    assert sorted(larger) == ["late_box", "soon_box"]
    assert min(larger.values()) > 1 << 20
    assert len(told) == 2
    assert "superbox soon_box: the segments of a train take" in " ".join(told)


def test_nothing_stays_in_memory_when_all_is_processed() -> None:
    with sparkless.make_engine(network("1 GB"), train=80) as engine:
        feed(engine)
        engine.drain()
        engine._loop.work()
        assert engine.stats()["memory"]["used"] == 0


@pytest.mark.parametrize("memory", [1, "1 KB", "1023 KB"])
def test_too_little_memory_is_refused(memory: int | str) -> None:
    with pytest.raises(NetworkError, match="expected 1 MB at least") as caught:
        au.EngineOptions(memory=memory)
    assert caught.value.code == "BAD_PARAMETER"
