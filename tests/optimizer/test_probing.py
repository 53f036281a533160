"""Expressions that may take long are timed on tuples that have passed, now and then."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import auroral as au
from auroral.engine.runtime.measuring import BoxWork, StepFlow
from auroral.engine.runtime.probing import REFRESH_S, SAMPLE_ROWS, ExpressionCosts
from auroral.engine.runtime.reordering import OrderOptimizer
from auroral.engine.runtime.step import StepOutcome
from auroral.engine.runtime.stepping import CommittedStep
from auroral.engine.runtime.train import Train
from auroral.optimizer import ASSUMED_S, Probe, Subnetworks, probes
from auroral.scheduling.superboxes import Superbox
from auroral.spark.running.probing import probed_seconds
from auroral.storage import Change, Store
from tests.conformance.sparkless import make_engine
from tests.optimizer.pricing import PricedExecutor

TRAIN = 300
HASHED = "sha2(sha2(sha2(sha2(body, 512), 512), 512), 512)"


def network() -> au.Network:
    net = au.Network("n")
    texts = net.stream("texts", "n bigint, k int, body string", progress=au.Ordered("n"))
    hashed = texts.filter("sha2(body, 256) != 'x'", name="hashed")
    net.output("o", hashed.filter("k > 0", name="cheap"))
    return net


def trains(engine: au.Engine, first: int, count: int) -> None:
    for at in range(first * TRAIN, (first + count) * TRAIN, TRAIN):
        given = [{"n": n, "k": int(n % 10 == 0), "body": f"b{n}"} for n in range(at, at + TRAIN)]
        engine.enqueue("texts", given)
        engine.drain()
        costs = engine._parts.context.expressions
        assert costs is not None
        costs.wait()


def moved(engine: au.Engine) -> list[tuple[str, str]]:
    return [(move["box"], move["past"]) for move in engine.stats()["optimizer"]["moves"]]


def test_a_cheap_filter_passes_an_expression_that_is_slow_and_a_restart_knows(
    tmp_path: Path,
) -> None:
    executor = PricedExecutor({}, {"hashed": 1e-3})
    state = tmp_path / "state"
    with make_engine(network(), executor=executor, train=TRAIN, state=state) as engine:
        trains(engine, 0, 10)
        assert moved(engine) == [("cheap", "hashed")]
        assert engine.stats()["optimizer"]["boxes"]["hashed"]["cost_s"] == pytest.approx(1e-3)
        assert engine.dequeue("o")["n"].to_pylist() == list(range(0, 10 * TRAIN, 10))
    assert [box for box, _ in executor.trials] == ["hashed"], "once a minute at most; k > 0 never"
    assert all(SAMPLE_ROWS / 2 <= tuples <= SAMPLE_ROWS for _, tuples in executor.trials)
    silent = PricedExecutor({})
    with make_engine(network(), executor=silent, train=TRAIN, state=state) as engine:
        trains(engine, 10, 4)
        assert engine.stats()["optimizer"]["boxes"]["hashed"]["cost_s"] == pytest.approx(1e-3)
        assert moved(engine) == [("cheap", "hashed")]


def test_it_stays_if_the_expression_is_fast() -> None:
    executor = PricedExecutor({}, {"hashed": 1e-8})
    with make_engine(network(), executor=executor, train=TRAIN) as engine:
        trains(engine, 0, 10)
        assert executor.trials
        assert moved(engine) == []
        known = engine.stats()["optimizer"]["boxes"]
        assert known["hashed"]["cost_s"] == known["cheap"]["cost_s"], "as a comparison at least"


class Trials:
    """Trials of one box, with a clock that a test moves on."""

    def __init__(self, store: Store, rows: int = SAMPLE_ROWS):
        self.now_s = 1_000.0
        self.trials = 0
        self.rows = rows
        self.costs = ExpressionCosts(store, lambda: self.now_s)
        self._probes = {one.box: one for one in probes(network().check(), ["hashed", "cheap"])}

    def tend(self, *, steps: int = 1, has_slack: bool = True) -> int:
        """How many trials there were so far."""
        self.costs.tend(
            self._probes,
            {"hashed": steps},
            lambda: lambda _arc, limit: pa.table({"n": range(min(self.rows, limit))}),
            self._trial,
            has_slack=has_slack,
        )
        self.costs.wait()
        return self.trials

    def _trial(self, _probe: Probe, _rows: pa.Table) -> float | None:
        self.trials += 1
        self.now_s += 0.5
        return 1e-5 * self.trials


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state")


def test_a_box_is_timed_when_it_has_run_and_again_after_a_minute(store: Store) -> None:
    one = Trials(store)
    assert one.tend(steps=0) == 0
    assert one.tend() == 1
    assert one.costs.known() == {"hashed": 1e-5}
    one.now_s += REFRESH_S - 1
    assert one.tend() == 1
    one.now_s += 1
    assert one.tend() == 2
    assert one.costs.known() == {"hashed": 2e-5}


def test_a_trial_waits_for_slack_but_not_for_ever(store: Store) -> None:
    one = Trials(store)
    assert one.tend(has_slack=False) == 0
    one.now_s += REFRESH_S
    assert one.tend(has_slack=False) == 1


def test_few_tuples_are_no_sample(store: Store) -> None:
    one = Trials(store, rows=10)
    assert [one.tend(steps=step) for step in (1, 2)] == [0, 0]
    one.rows = SAMPLE_ROWS
    assert one.tend(steps=3) == 0, "it looks again two steps later"
    assert one.tend(steps=4) == 1


def test_what_is_made_by_a_python_function_is_not_made_to_be_timed() -> None:
    net = au.Network("n")
    net.function("f", "tests.conformance.plain_functions:picky", returns="bigint")
    texts = net.stream("texts", "n bigint, body string", progress=au.Ordered("n"))
    called = texts.map(keep="*", y="f(n)", name="called")
    net.output("o", called.filter("abs(y) > 1", name="made").filter("abs(n) > 1", name="kept"))
    checked = net.check()
    assert [probe.box for probe in probes(checked, ["called", "made", "kept"])] == ["kept"]


@pytest.mark.parametrize(("fused", "cost_s"), [(False, 1e-5), (True, ASSUMED_S)])
def test_a_box_that_is_a_step_of_its_own_costs_what_its_steps_take(
    fused: bool, cost_s: float
) -> None:
    optimizer = OrderOptimizer()
    boxes = ("hashed", "cheap") if fused else ("hashed",)
    superbox = Superbox("hashed", ("texts",), boxes, boxes[-1:])
    for number in range(12):
        tuples = 1_000 + 500 * (number % 3)
        work = {"hashed": BoxWork(tuples, tuples // 2, 0.05 + tuples * 1e-5)}
        outcome = StepOutcome(Change(), flow=StepFlow({"texts": tuples}))
        train = Train(superbox, number, number + 1, {})
        optimizer.committed(CommittedStep(train, outcome, 0.1, work))
    found = optimizer.estimates(Subnetworks(network().check()), ["hashed"], ())
    assert found["hashed"].cost_s == pytest.approx(cost_s)


@pytest.mark.spark
def test_spark_takes_longer_for_hashes_than_for_a_sign(spark) -> None:  # type: ignore[no-untyped-def]
    net = au.Network("n")
    texts = net.stream("texts", "n bigint, body string", progress=au.Ordered("n"))
    again = net.union(texts, texts.map(keep="*", name="same"), name="both")
    longer = again.map(n="n", long="concat(body, body)", name="longer")
    slow = longer.filter(HASHED.replace("body", "long") + " LIKE '%a%'", name="slow")
    net.output("o", slow.filter("abs(n) >= 0", name="fast"))
    rows = pa.table({"_seq": range(300), "n": range(300), "body": [f"b{n}" for n in range(300)]})
    found = {one.box: one for one in probes(net.check(), ["slow", "fast"])}
    slow_s, fast_s = (probed_seconds(spark, found[box], rows) for box in ("slow", "fast"))
    assert slow_s > 5 * fast_s
    assert slow_s > 1e-6
