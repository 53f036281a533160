"""A slow or hanging sink delays only itself."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import auroral as au
import auroral.storage.compaction
from auroral.engine import Engine
from auroral.engine.sinks.sinks import Sinks
from auroral.io.sinks.sink import Delivery
from auroral.storage import Segment, Store
from tests.conformance import sparkless
from tests.conformance.delivering import Lasting

from .market import SUMS, all_ticks, batch, going_ticks, in_thread, numbers
from .test_sink_failures import Failing, mend

_LONG_S = 60


class Hanging(Lasting):
    """Does not return from `write` before it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.called, self.go_on = threading.Event(), threading.Event()

    def write(self, delivery: Delivery) -> int:
        self.called.set()
        assert self.go_on.wait(_LONG_S)
        return super().write(delivery)


class Counting(Lasting):
    """Tells when it has got so many rows, and keeps the names of the threads that called it."""

    def __init__(self, count: int):
        super().__init__()
        self._count = count
        self.full = threading.Event()
        self.threads: set[str] = set()

    def write(self, delivery: Delivery) -> int:
        self.threads.add(threading.current_thread().name)
        position = super().write(delivery)
        if position >= self._count:
            self.full.set()
        return position


def _dequeued(engine: Engine, output: str, count: int) -> list[int]:
    """The results of an output, as soon as there are so many."""
    found: list[int] = []
    while len(found) < count:
        engine.wait(0.05)
        found += numbers(engine.dequeue(output))
    return found


def test_neither_other_sinks_nor_dequeue_wait_for_a_sink_that_hangs() -> None:
    net = going_ticks()
    net.query("read", "SELECT n FROM ticks")
    hanging, well = Hanging(), Counting(20)
    with sparkless.make_engine(net, train=5, background=True) as engine:
        engine.bind_sink("going", hanging)
        engine.bind_sink("all", well)
        engine.enqueue("ticks", batch(0, 10))
        assert hanging.called.wait(_LONG_S)
        engine.enqueue("ticks", batch(10, 20))
        assert well.full.wait(_LONG_S)
        assert _dequeued(engine, "read", 20) == list(range(20))
        outputs = engine.stats()["outputs"]
        assert outputs["going"]["waiting"] == 20
        assert outputs["all"]["waiting"] == 0
        assert "failed" not in outputs["going"]
        with pytest.raises(au.RunError, match="TIMEOUT"):
            engine.drain(timeout_s=0)
        hanging.go_on.set()
        engine.drain()
        assert hanging.column("n") == well.column("n") == list(range(20))
    assert well.threads == {"sink all"}
    assert hanging.closed
    assert well.closed


def test_without_threads_sinks_are_called_by_who_waits() -> None:
    sink = Counting(10)
    with sparkless.make_engine(all_ticks()) as engine:
        engine.bind_sink("all", sink)
        engine.enqueue("ticks", batch(0, 10))
        engine.drain()
    assert sink.threads == {threading.current_thread().name}


@pytest.mark.parametrize("going", ["SELECT n FROM ticks", SUMS])
def test_the_engine_ends_although_a_sink_does_not_return(going: str, tmp_path: Path) -> None:
    """What it has not confirmed is for the next start, whatever it does afterwards."""
    net, hanging, well, after = going_ticks(going), Hanging(), Lasting(), Lasting()
    session: Any = sparkless.InProcessExecutor()
    engine = Engine(net, executor=session, state=tmp_path, sink_grace_s=0.05)
    engine.bind_sink("going", hanging)
    engine.bind_sink("all", well)
    engine.start()
    engine.enqueue("ticks", batch(0, 10))
    assert hanging.called.wait(_LONG_S)
    engine.enqueue("ticks", batch(10, 15))
    while engine.stats()["outputs"]["all"]["out"] < 15:
        engine.wait(0.05)
    with pytest.raises(au.SinkError, match=r"SINK_BUSY: output going: .* within 0\.05 s"):
        engine.__exit__(None, None, None)
    assert not hanging.closed, "nobody touches it any more"
    assert well.closed
    with sparkless.make_engine(
        net, state=tmp_path, bind=[("going", after), ("all", well)], background=True
    ) as again:
        hanging.go_on.set()  # the one of the run before returns, which counts for nothing
        again.enqueue("ticks", batch(15, 20))
        again.drain()
        assert after.column("n") == well.column("n") == list(range(20))


def test_the_statistics_at_the_end_tell_of_a_sink_that_was_abandoned() -> None:
    hanging = Hanging()
    session: Any = sparkless.InProcessExecutor()
    engine = Engine(going_ticks(), executor=session, sink_grace_s=0).start()
    engine.bind_sink("going", hanging)
    engine.enqueue("ticks", batch(0, 10))
    assert hanging.called.wait(_LONG_S)
    engine.modify(remove=["going"])
    stats = engine.shutdown()
    assert stats["outputs"]["going"]["failed"] == (
        "the sink did not return within 0 s and was abandoned"
    )
    assert stats["outputs"]["going"]["left"] == 10
    hanging.go_on.set()


def test_a_sink_that_hangs_when_it_is_closed_is_abandoned_too() -> None:
    class Stuck(Lasting):
        def close(self) -> None:
            assert go_on.wait(_LONG_S)

    go_on = threading.Event()
    session: Any = sparkless.InProcessExecutor()
    engine = Engine(all_ticks(), executor=session, sink_grace_s=0.05).start()
    engine.bind_sink("all", Stuck())
    engine.enqueue("ticks", batch(0, 3))
    engine.drain()
    stats = engine.shutdown()
    go_on.set()
    assert stats["outputs"]["all"]["out"] == 3
    assert "did not return" in stats["outputs"]["all"]["failed"]


def test_an_abandoned_sink_cannot_use_the_engine() -> None:
    refused, ended, go_on = threading.Event(), threading.Event(), threading.Event()
    session: Any = sparkless.InProcessExecutor()

    def deliver(_delivery: Delivery) -> None:
        go_on.set()
        assert ended.wait(_LONG_S)
        for call in (engine.stats, lambda: engine.modify(remove=["all"])):
            with pytest.raises(au.UsageError, match="NOT_STARTED"):
                call()
        refused.set()

    engine = Engine(all_ticks(), executor=session, sink_grace_s=0).start()
    engine.bind_sink("all", deliver)
    engine.enqueue("ticks", batch(0, 3))
    assert go_on.wait(_LONG_S)
    engine.shutdown()
    ended.set()
    assert refused.wait(_LONG_S)
    assert engine._loop.failure is None


@pytest.mark.parametrize("grace_s", [-1, float("nan"), "soon"])
def test_a_grace_time_is_a_number_of_seconds(grace_s: Any) -> None:
    with pytest.raises(au.UsageError, match="BAD_OPTION: sink_grace_s"):
        Engine(all_ticks(), sink_grace_s=grace_s)


def test_what_steps_have_given_is_delivered_before_the_end() -> None:
    """The thread of a sink goes on when the engine ends, for some time."""
    hanging = Hanging()
    session: Any = sparkless.InProcessExecutor()
    engine = Engine(all_ticks(), executor=session, train=2, sink_grace_s=_LONG_S).start()
    engine.bind_sink("all", hanging)
    engine.enqueue("ticks", batch(0, 10))
    assert hanging.called.wait(_LONG_S)
    while engine._loop.execution.stepper.done_before() < engine._ingest.next_moment:
        engine.wait(0.05)
    ending = in_thread(engine.shutdown)
    hanging.go_on.set()
    ending.join(_LONG_S)
    assert hanging.column("n") == list(range(10))
    assert hanging.closed


def test_how_far_a_sink_is_behind() -> None:
    now_us = [1_000_000]
    hanging = Hanging()
    net = going_ticks()
    with sparkless.make_engine(net, background=True, now_us=lambda: now_us[0]) as engine:
        engine.bind_sink("all", hanging)
        assert engine.stats()["outputs"]["all"]["behind_s"] == 0.0
        engine.enqueue("ticks", batch(0, 3))
        assert hanging.called.wait(_LONG_S)
        now_us[0] += 4_000_000
        engine.enqueue("ticks", batch(3, 5))
        now_us[0] += 1_500_000
        assert engine.stats()["outputs"]["all"]["behind_s"] == 5.5, "the age of the oldest tuple"
        engine.modify(remove=["all"])
        now_us[0] += 1_000_000
        assert engine.stats()["outputs"]["all"]["behind_s"] == 6.5, "also of what is left"
        hanging.go_on.set()
        engine.drain()
        assert hanging.column("n") == list(range(5))
        outputs = engine.stats()["outputs"]
        assert "all" not in outputs
    with sparkless.make_engine(all_ticks(), clock="arrival") as engine:
        engine.bind_sink("all", Lasting())
        assert engine.stats()["outputs"]["all"]["behind_s"] is None, "time is what arrivals say"


def test_behind_is_nothing_when_everything_is_delivered() -> None:
    now_us = [1_000_000]
    with sparkless.make_engine(all_ticks(), now_us=lambda: now_us[0]) as engine:
        engine.bind_sink("all", Lasting())
        for start in (0, 3):
            engine.enqueue("ticks", batch(start, start + 3))
            engine.drain()
            now_us[0] += 2_000_000
            assert engine.stats()["outputs"]["all"]["behind_s"] == 0.0


def test_every_sink_gets_its_output_in_order() -> None:
    net = all_ticks()
    net.output("raw", "ticks")
    names = ["raw", "all", *(f"q{n}" for n in range(6))]
    for name in names[2:]:
        net.query(name, "SELECT n FROM ticks" if int(name[1]) % 2 else SUMS)
    sinks = {name: Counting(60) for name in names}
    with sparkless.make_engine(net, train=3, background=True, bind=list(sinks.items())) as engine:
        for start in range(0, 60, 4):
            engine.enqueue("ticks", batch(start, start + 4))
        engine.drain()
    for name, sink in sinks.items():
        assert sink.column("n") == list(range(60)), name
        assert sink.threads == {f"sink {name}"}


def test_a_sink_removes_the_query_of_another_that_is_being_called() -> None:
    """Only the sink that removes its own query gets nothing more."""
    hanging, removed = Hanging(), threading.Event()
    with sparkless.make_engine(going_ticks(), train=2, background=True) as engine:

        def remove(_delivery: Delivery) -> None:
            if not removed.is_set():
                assert hanging.called.wait(_LONG_S)
                engine.modify(remove=["going"])
                removed.set()

        engine.bind_sink("going", hanging)
        engine.bind_sink("all", remove)
        engine.enqueue("ticks", batch(0, 10))
        assert removed.wait(_LONG_S)
        hanging.go_on.set()
        engine.drain()
        assert hanging.column("n") == list(range(10))
        assert hanging.closed


def test_a_sink_may_use_the_engine_from_its_thread() -> None:
    done, later = threading.Event(), Lasting()
    found: list[list[int]] = []
    with sparkless.make_engine(going_ticks(), background=True) as engine:

        def deliver(_delivery: Delivery) -> None:
            if not done.is_set():
                found.append(_dequeued(engine, "going", 5))
                assert engine.stats()["outputs"]["all"]["waiting"] == 5
                engine.modify(add={"later": "SELECT n FROM ticks WHERE n > 5"})
                engine.bind_sink("later", later)
                engine.enqueue("ticks", batch(5, 9))
                done.set()

        engine.bind_sink("all", deliver)
        engine.enqueue("ticks", batch(0, 5))
        assert done.wait(_LONG_S)
        engine.drain()
        assert later.column("n") == [6, 7, 8]
    assert found == [[0, 1, 2, 3, 4]]


def test_who_binds_a_sink_waits_for_the_one_before_without_holding_up_others() -> None:
    """The sink that is waited for may itself bind another meanwhile."""
    before, after, third = Hanging(), Lasting(), Lasting()
    net = going_ticks()
    net.query("third", "SELECT n FROM ticks")
    with sparkless.make_engine(net, background=True) as engine:
        engine.bind_sink("going", before)
        engine.enqueue("ticks", batch(0, 5))
        assert before.called.wait(_LONG_S)
        engine.modify(remove=["going"])
        engine.modify(add={"going": "SELECT n FROM ticks"})
        binding = in_thread(lambda: engine.bind_sink("going", after))
        engine.bind_sink("third", third)
        before.go_on.set()
        binding.join(_LONG_S)
        assert not binding.is_alive()
        engine.enqueue("ticks", batch(5, 8))
        engine.drain()
    assert (before.column("n"), after.column("n")) == (list(range(5)), [5, 6, 7])


def test_what_fails_in_a_delivery_and_is_not_the_sinks_mistake_stops_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_self: Sinks, _handed: object) -> bool:
        raise OSError("no disk")

    monkeypatch.setattr(Sinks, "_note", fail)
    with sparkless.make_engine(all_ticks(), background=True) as engine:
        engine.bind_sink("all", Lasting())
        engine.enqueue("ticks", batch(0, 5))
        with pytest.raises(au.RunError, match="INTERNAL: OSError: no disk"):
            engine.drain()
        engine._loop.failure = None


# ── dequeue ──


class _SlowTable:
    """Lets the first who reads a segment wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.reading, self.go_on = threading.Event(), threading.Event()
        table = Store.table

        def slowly(store: Store, segment: Segment, columns: list[str] | None = None) -> Any:
            if columns is None and not self.reading.is_set():
                self.reading.set()
                assert self.go_on.wait(_LONG_S)
            return table(store, segment, columns)

        monkeypatch.setattr(Store, "table", slowly)


@pytest.mark.parametrize("together", [False, True])
def test_two_threads_share_what_is_dequeued(
    together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one reads, the store is free, and others take other outputs."""
    net = all_ticks()
    net.output("raw", "ticks")
    with sparkless.make_engine(net, train=2) as engine:
        engine.enqueue("ticks", batch(0, 6))
        engine.drain()
        slow = _SlowTable(monkeypatch)
        found: list[list[int]] = []
        one = in_thread(lambda: found.append(numbers(engine.dequeue("all"))))
        assert slow.reading.wait(_LONG_S)
        other = in_thread(
            lambda: found.append(
                numbers(engine.dequeue_all("ticks") if together else engine.dequeue("all"))
            )
        )
        assert engine._store.lock.acquire(timeout=_LONG_S)  # type: ignore[attr-defined]
        engine._store.lock.release()  # type: ignore[attr-defined]
        assert numbers(engine.dequeue("raw")) == list(range(6))
        engine.enqueue("ticks", batch(6, 8))
        slow.go_on.set()
        for thread in (one, other):
            thread.join(_LONG_S)
        assert sorted(found) == [[], list(range(6))]
        engine.drain()
        assert numbers(engine.dequeue("all")) == [6, 7]


def test_a_sink_that_comes_while_somebody_dequeues_begins_after_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sink = Lasting()
    with sparkless.make_engine(all_ticks(), train=2, background=True) as engine:
        engine.enqueue("ticks", batch(0, 6))
        engine.drain()
        slow = _SlowTable(monkeypatch)
        found: list[list[int]] = []
        one = in_thread(lambda: found.append(numbers(engine.dequeue("all"))))
        assert slow.reading.wait(_LONG_S)
        binding = in_thread(lambda: engine.bind_sink("all", sink))
        slow.go_on.set()
        for thread in (one, binding):
            thread.join(_LONG_S)
        engine.enqueue("ticks", batch(6, 8))
        engine.drain()
    assert (found, sink.column("n")) == ([list(range(6))], [6, 7])


def test_a_query_that_is_removed_while_it_is_dequeued_gives_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised: list[au.UsageError] = []
    with sparkless.make_engine(going_ticks(), train=2) as engine:
        engine.enqueue("ticks", batch(0, 6))
        engine.drain()
        slow = _SlowTable(monkeypatch)

        def dequeue() -> None:
            with pytest.raises(au.UsageError, match="UNKNOWN_OUTPUT") as error:
                engine.dequeue("going")
            raised.append(error.value)

        one = in_thread(dequeue)
        assert slow.reading.wait(_LONG_S)
        engine.modify(remove=["going"])
        slow.go_on.set()
        one.join(_LONG_S)
        assert len(raised) == 1
        assert [reader for _, reader in engine._store.names()[1] if "going" in reader] == []
        assert numbers(engine.dequeue("all")) == list(range(6))


@pytest.mark.parametrize("sunk", [False, True])
def test_segments_that_are_merged_while_they_are_read_are_found_again(
    sunk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = au.Network("raw")
    stream = net.stream("ticks", "n bigint, sym string, price double")
    net.output("raw", stream.filter("n >= 0", name="f"))
    table, merging = Store.table, threading.Event()
    monkeypatch.setattr(auroral.storage.compaction, "FAN_IN", 4)

    def merged(store: Store, segment: Segment, columns: list[str] | None = None) -> Any:
        if not merging.is_set():
            merging.set()
            assert store.compact(segment.log) > 0
        return table(store, segment, columns)

    sink = Failing()
    bind = [("raw", sink)] if sunk else []
    with sparkless.make_engine(net, train=2, bind=bind) as engine:
        engine.enqueue("ticks", batch(0, 12))
        with suppress(au.SinkError):
            engine.drain()
        monkeypatch.setattr(Store, "table", merged)
        if sunk:
            engine.bind_sink("raw", sink)
            engine.drain()
        found = sink.column("n") if sunk else numbers(engine.dequeue("raw"))
        assert merging.is_set()
    assert found == list(range(12))


@pytest.mark.parametrize("seed", range(8))
def test_whatever_fails_when_each_gets_everything_once(seed: int, tmp_path: Path) -> None:
    """As without threads: sinks fail, queries are replaced, engines are started again."""
    chance = random.Random(seed)
    sinks = {name: Failing(0) for name in ("all", "going", "family")}
    net = going_ticks(chance.choice(["SELECT n FROM ticks", SUMS]))
    rows = [{"key": key, "least": 0} for key in "ab"]
    net.family("family", "SELECT n FROM ticks WHERE n >= :least", rows, key="key")
    fed = 0
    for _ in range(chance.randint(1, 3)):
        with sparkless.make_engine(
            net, state=tmp_path, train=chance.randint(1, 9), background=True
        ) as engine:
            for name, sink in sinks.items():
                engine.bind_sink(name, sink)
            for _ in range(chance.randint(1, 8)):
                more = chance.randint(1, 5)
                engine.enqueue("ticks", batch(fed, fed + more))
                fed += more
                if chance.random() < 0.3:
                    sinks[chance.choice(list(sinks))].times = chance.randint(0, 2)
                if chance.random() < 0.5:
                    engine.modify(remove=["going"], add={"going": "SELECT n FROM ticks"})
                if chance.random() < 0.3:
                    mend(engine, sinks, chance.random())
            for sink in sinks.values():
                sink.times = 0
            mend(engine, sinks, 1)
            engine.drain()
    assert sinks["all"].column("n") == list(range(fed))
    assert sinks["going"].column("n") == list(range(fed))
    assert sinks["family"].column("n") == [n for n in range(fed) for _ in "ab"]
