"""Stories of superboxes that waited: who was chosen before them, without an entry per decision."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from auroral.engine.inspect.stories import DecisionLog
from auroral.engine.runtime import deciding
from auroral.engine.runtime.arrival_times import ArrivalTimes
from auroral.engine.runtime.deciding import StepScheduler
from auroral.engine.runtime.waiting import WaitingTuples
from auroral.network.declarations import SchedulerName
from auroral.network.network import Network
from auroral.qos.graphs import QoS
from auroral.scheduling.flow import FlowBox, FlowModel, FlowOutput
from auroral.scheduling.policies import SchedulerSettings, make_scheduler
from tests.conformance.sparkless import make_engine

MODEL = FlowModel(
    {name: FlowBox(name, (f"{name}_in",), {name: 1.0}, 1e-4, 0.05) for name in ("fast", "slow")},
    {
        "alerts": FlowOutput("alerts", "fast", QoS(latency=[(0, 1), (0.01, 1), (1, 0)])),
        "archive": FlowOutput("archive", "slow", QoS(latency=[(0, 1), (4, 1), (60, 0)])),
    },
)


class Rounds:
    """Two superboxes that always have tuples, and one worker."""

    def __init__(self, name: SchedulerName = "qos"):
        self.now_s = 100.0
        self.log = DecisionLog(lambda: int(self.now_s * 1e6))
        self.times = ArrivalTimes(now_s=lambda: self.now_s)
        settings = SchedulerSettings(name, "fuse", "mc", weighs_trains=True)
        self.scheduler = StepScheduler(
            make_scheduler(settings),
            lambda: MODEL,
            {box: (box, f"{box}_box") for box in MODEL.boxes},
            self.times,
            self.log,
            now_s=lambda: self.now_s,
        )
        self.times.arrived(10)
        self.first = {"fast": 0, "slow": 0}

    def step(self) -> str:
        """Let time pass and one superbox start; it takes all that waits for it."""
        self.now_s += 0.2
        waiting = {
            name: WaitingTuples(100, first, self.moment) for name, first in self.first.items()
        }
        self.scheduler.offer(waiting, ())
        (plan,) = self.scheduler.decide(1)
        box = plan.calls[0].box
        self.scheduler.started(box, plan.why)
        self.times.arrived(self.moment + 10)
        self.first[box] = self.moment - 10
        return box

    @property
    def moment(self) -> int:
        return self.times._before[-1]

    def story(self, name: str, event: str) -> list[dict[str, Any]]:
        return [entry for entry in self.log.story(name) if entry["event"] == event]


def test_a_superbox_that_was_passed_over_says_for_whom_in_one_entry() -> None:
    rounds = Rounds()
    ran = [rounds.step() for _ in range(15)]
    assert set(ran) == {"fast"}
    (entry,) = rounds.story("slow_box", "waited")
    assert entry["why"].startswith("waited ")
    assert entry["why"].endswith(" s: alerts had the steeper graph")
    assert 1 < entry["count"] <= 4  # once in a second, not at every decision
    assert float(entry["why"].split()[1]) > 1.0
    assert not rounds.story("fast_box", "waited")


def test_who_ran_and_who_waited_are_one_entry_each() -> None:
    rounds = Rounds("rr")
    for _ in range(40):
        rounds.step()
    (waited,) = rounds.story("slow_box", "waited")
    assert waited["why"].endswith("s: it was the turn of alerts")
    (ran,) = rounds.story("slow_box", "ran")
    assert ran["count"] == pytest.approx(20, abs=1)


def test_costs_are_looked_at_anew_once_in_a_second_and_when_graphs_change() -> None:
    rounds = Rounds()
    looked, version = [], [0]

    def model() -> FlowModel:
        looked.append(rounds.now_s)
        return MODEL

    rounds.scheduler.model = model
    rounds.scheduler.version = lambda: version[0]
    for _ in range(20):  # 4 s
        rounds.step()
    assert 3 <= len(looked) <= 5
    version[0], before = 1, len(looked)
    rounds.step()
    assert len(looked) == before + 1


def test_looking_at_costs_takes_no_more_than_a_hundredth_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds = Rounds()
    clock = iter(range(10**6))
    # Each look at the time takes 50 ms, so that looking at costs takes as long at least.
    timed = SimpleNamespace(perf_counter=lambda: 0.05 * next(clock), monotonic=time.monotonic)
    monkeypatch.setattr(deciding, "time", timed)
    looked = []

    def model() -> FlowModel:
        looked.append(rounds.now_s)
        return MODEL

    rounds.scheduler.model = model
    for _ in range(60):  # 12 s
        rounds.step()
    assert len(looked) == pytest.approx(12 / 5, abs=1)


def test_looking_at_what_waits_counts_as_deciding() -> None:
    rounds = Rounds()
    rounds.step()
    before = rounds.scheduler.effort
    rounds.scheduler.offer({}, ())
    after = rounds.scheduler.effort
    assert after.seconds > before.seconds
    assert after.decisions == before.decisions
    rounds.scheduler.spend(2.0)
    assert rounds.scheduler.effort.seconds == pytest.approx(after.seconds + 2.0)


def test_the_engine_counts_its_look_at_the_queues_as_deciding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = Network("urgent")
    kept = net.stream("s", "v bigint").filter("v >= 0", name="f")
    net.output("o", kept, qos=QoS(latency=[(0, 1), (1, 0)]))
    happened = []
    spend, offer = StepScheduler.spend, StepScheduler.offer

    def spent(scheduler: StepScheduler, seconds: float) -> None:
        happened.append("looked")
        spend(scheduler, seconds)

    def offered(scheduler: StepScheduler, *args: Any) -> None:
        happened.append("offered")
        offer(scheduler, *args)

    monkeypatch.setattr(StepScheduler, "spend", spent)
    monkeypatch.setattr(StepScheduler, "offer", offered)
    with make_engine(net) as engine:
        engine.enqueue("s", [(1,)])
        engine.drain()
        assert engine.dequeue("o").num_rows == 1
    assert happened[:2] == ["looked", "offered"]
