"""Steps of superboxes that do not wait for each other run at the same time."""

from __future__ import annotations

import threading
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

import auroral as au
from auroral.engine.runtime import stepper
from auroral.engine.runtime.in_process import InProcessExecutor, InProcessPlainRunner
from auroral.engine.runtime.pool import StepPool
from tests.conformance import sparkless
from tests.conformance.events import Events
from tests.conformance.networks import way
from tests.conformance.running import Run
from tests.conformance.stateful import stateful_network
from tests.conformance.test_stateful import TABLES, needs_spark, set_out

_LONG_S = 60
COUNTS = "SELECT count(*) AS c FROM slow [ROWS 2]"


def _network() -> au.Network:
    """Two applications that share nothing."""
    net = au.Network("apart")
    for name in ("slow", "quick"):
        net.output(f"{name}_out", net.stream(name, "n bigint").filter("n >= 0", name=f"{name}_box"))
    return net


class _Blocked:
    """Lets steps with some box wait until `go_on` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, box: str):
        self.reached, self.go_on = threading.Event(), threading.Event()
        run = InProcessPlainRunner.run

        def blocking(runner: Any, superbox: Any, *given: Any, **more: Any) -> Any:
            if box in superbox.boxes:
                self.reached.set()
                assert self.go_on.wait(_LONG_S)
            return run(runner, superbox, *given, **more)

        monkeypatch.setattr(InProcessPlainRunner, "run", blocking)


def _rows(*numbers: int) -> list[tuple[int]]:
    return [(n,) for n in numbers]


def _await(engine: au.Engine, output: str, wanted: int) -> list[int]:
    found: list[int] = []
    while len(found) < wanted:
        engine.wait(0.05)
        found += engine.dequeue(output)["n"].to_pylist()
    return found


# ── the pool ──


def test_tasks_run_at_the_same_time() -> None:
    pool = StepPool[int](2)
    both = threading.Barrier(2, timeout=_LONG_S)
    for name in ("a", "b"):
        pool.submit(name, both.wait)
    found: dict[str, Any] = {}
    while len(found) < 2:
        assert pool.wait(_LONG_S)
        found |= {one.name: one.error for one in pool.take_finished()}
    assert found == {"a": None, "b": None}
    assert pool.names == set()


def test_what_a_task_raises_is_taken_like_a_result() -> None:
    pool = StepPool[int](1)
    pool.submit("a", partial(int, "nothing"))
    assert pool.wait(_LONG_S)
    (ended,) = pool.take_finished()
    assert isinstance(ended.error, ValueError)


def test_a_task_that_hangs_is_given_up_and_others_run() -> None:
    pool, go_on = StepPool[object](1), threading.Event()
    pool.submit("hangs", partial(go_on.wait, _LONG_S))
    while "hangs" not in pool.overdue(-1):
        pass  # until a worker has taken it
    pool.abandon("hangs")
    assert pool.names == set()
    pool.submit("hangs", lambda: True)  # another of the same name
    assert pool.wait(_LONG_S)
    assert [(one.name, one.value) for one in pool.take_finished()] == [("hangs", True)]
    go_on.set()


# ── the engine ──


def test_an_application_does_not_wait_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = _Blocked(monkeypatch, "slow_box")
    with sparkless.make_engine(_network(), background=True) as engine:
        engine.enqueue("slow", _rows(1, 2))
        assert blocked.reached.wait(_LONG_S)
        engine.enqueue("quick", _rows(3, 4))
        assert _await(engine, "quick_out", 2) == [3, 4]
        assert engine.dequeue("slow_out").num_rows == 0
        blocked.go_on.set()
        engine.drain()
        assert engine.dequeue("slow_out")["n"].to_pylist() == [1, 2]


def test_a_train_takes_what_arrives_before_a_worker_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And superboxes take turns: the one that has run last comes after the others."""
    blocked, ran = _Blocked(monkeypatch, "slow_box"), []
    enter = InProcessExecutor.enter

    def entering(executor: InProcessExecutor, name: str) -> None:
        ran.append(name)
        enter(executor, name)

    monkeypatch.setattr(InProcessExecutor, "enter", entering)
    with sparkless.make_engine(_network(), background=True, workers=1) as engine:
        engine.enqueue("slow", _rows(1))
        assert blocked.reached.wait(_LONG_S)
        for number in range(2, 5):
            for stream in ("slow", "quick"):
                engine.enqueue(stream, _rows(number))
            engine._loop.settle_or_wait(engine._ingest.next_moment, 0.05)
        blocked.go_on.set()
        engine.drain()
        assert engine.dequeue("quick_out")["n"].to_pylist() == [2, 3, 4]
        assert engine.dequeue("slow_out")["n"].to_pylist() == [1, 2, 3, 4]
    assert ran == ["slow_box", "quick_box", "slow_box"]


def test_a_thread_per_box_lets_all_boxes_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step ends when all have begun; there are fewer workers otherwise."""
    net, boxes = au.Network("apart"), 6
    for number in range(boxes):
        arc = net.stream(f"s{number}", "n bigint").filter("n >= 0", name=f"box{number}")
        net.output(f"o{number}", arc)
    net.engine = au.EngineOptions(scheduler="thread-per-box")
    together, run = threading.Barrier(boxes), InProcessPlainRunner.run
    threads: set[int] = set()

    def meeting(runner: Any, *given: Any, **more: Any) -> Any:
        together.wait(_LONG_S)
        threads.add(threading.get_ident())
        return run(runner, *given, **more)

    monkeypatch.setattr(InProcessPlainRunner, "run", meeting)
    with sparkless.make_engine(net, background=True, executor=InProcessExecutor()) as engine:
        assert engine.stats()["scheduler"]["scheduler"] == "thread-per-box"
        for number in range(boxes):
            engine.enqueue(f"s{number}", _rows(number))
        engine.drain()
        found = [engine.dequeue(f"o{number}")["n"].to_pylist() for number in range(boxes)]
    assert found == [[number] for number in range(boxes)]
    assert len(threads) == boxes > InProcessExecutor().workers


def test_tasks_do_not_wait_for_a_worker_that_was_told_of_another() -> None:
    pool: StepPool[int] = StepPool(2)
    pool.submit("first", lambda: 0)
    assert pool.wait(_LONG_S)
    pool.take_finished()  # its worker is idle now
    together = threading.Barrier(2)
    with pool._changed:  # it cannot take the one before the other is there
        for name in ("one", "other"):
            pool.submit(name, lambda: together.wait(5))
    ended = 0
    while ended < 2:
        assert pool.wait(_LONG_S)
        for one in pool.take_finished():
            assert one.error is None
            ended += 1
    pool.close()


def test_boxes_come_while_a_step_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = _Blocked(monkeypatch, "slow_box")
    with sparkless.make_engine(_network(), background=True) as engine:
        engine.enqueue("slow", _rows(1, 2))
        assert blocked.reached.wait(_LONG_S)
        engine.modify(add={"counts": COUNTS})
        engine.enqueue("slow", _rows(3, 4))
        blocked.go_on.set()
        engine.drain()
        assert engine.dequeue("slow_out")["n"].to_pylist() == [1, 2, 3, 4]
        assert engine.dequeue("counts")["c"].to_pylist() == [2]


def test_a_box_that_takes_too_long_is_halted_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepper, "_GRACE_S", 0.05)
    before = set(threading.enumerate())
    with monkeypatch.context() as patch:
        blocked = _Blocked(patch, "slow_box")
        engine = au.Engine(
            _network(), executor=InProcessExecutor(), state=tmp_path, step_timeout_s=1.0
        )
        engine.start()
        engine.enqueue("slow", _rows(1))
        assert blocked.reached.wait(_LONG_S)
        engine.enqueue("quick", _rows(2))
        with pytest.raises(au.RunError, match=r"STEP_TIMEOUT.*slow_box"):
            engine.drain()
        assert engine.dequeue("quick_out")["n"].to_pylist() == [2]
        for name in ("slow_box", "slow_out"):
            told = engine.story(name)[-1]
            assert (told["event"], "took longer than 1 s" in told["why"]) == ("failed", True)
        engine.shutdown()
        blocked.go_on.set()
        for thread in set(threading.enumerate()) - before:
            thread.join(_LONG_S)  # in another process the abandoned worker would be gone
    with sparkless.make_engine(_network(), state=tmp_path) as again:
        again.drain()
        assert again.dequeue("slow_out")["n"].to_pylist() == [1]


def test_a_query_that_takes_too_long_stops_and_the_network_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stepper, "_GRACE_S", 0.05)
    blocked = _Blocked(monkeypatch, "both#2")
    net = _network()
    net.query("both", "SELECT n FROM slow UNION quick")
    options: Any = {"background": True, "step_timeout_s": 1.0}
    with sparkless.make_engine(net, **options) as engine:
        engine.enqueue("slow", _rows(1))
        assert blocked.reached.wait(_LONG_S)
        engine.drain()
        assert "STEP_TIMEOUT" in engine.stats()["queries"]["both"]["error"]
        assert engine.dequeue("slow_out")["n"].to_pylist() == [1]
        blocked.go_on.set()


@pytest.mark.parametrize("text", ["0 s", "soon"])
def test_a_time_limit_is_some_time(text: str) -> None:
    with pytest.raises(au.NetworkError, match="BAD_DURATION"):
        au.Network.parse({"network": "n", "engine": {"step_timeout": text}})


def test_steps_need_a_worker() -> None:
    with pytest.raises(au.UsageError, match="BAD_OPTION: steps need at least one worker"):
        au.Engine(_network(), workers=0)


@pytest.mark.law
@pytest.mark.parametrize("seed", range(6))
def test_any_number_of_workers_gives_the_same(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(f"workers {seed}")
    drawn = (stateful_network(rng, 6) for _ in count())
    net = next(net for net in drawn if not any(map(needs_spark, net.boxes.values())))
    batches = Events(rng, net).script(30, drains=0.1)
    chosen = way(rng, crashing=False)
    set_out(monkeypatch, chosen)
    make = partial(sparkless.make_engine, workers=rng.randint(1, 4))
    options = {"background": True}
    Run(partial(make, **options), net, batches, chosen, TABLES).go(tmp_path)
