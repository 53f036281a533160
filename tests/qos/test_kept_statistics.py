"""Statistics over restarts: rates, ages of queues, and what was delivered and lost."""

from __future__ import annotations

import itertools
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.cli import main as cli
from auroral.engine import Engine
from auroral.engine.inspect.kept_statistics import PERIOD_S
from auroral.engine.runtime.arrival_times import ArrivalTimes
from auroral.qos.graphs import QoS
from auroral.qos.output_monitor import HISTORY_S, OutputMonitor
from auroral.scheduling.rates import ArrivalRates
from auroral.simulation.networks import measured_network
from auroral.simulation.prediction import SPARK, measured_machine
from auroral.storage import Store
from auroral.storage.snapshot import ManifestSnapshot
from auroral.storage.statistics import KeptStatistics
from tests.conformance.sparkless import make_engine
from tests.qos.test_output_quality import Clock, document, rows


class Crash(BaseException):
    """The process ends."""


@contextmanager
def running(state: Path, clock: Clock, **options: Any) -> Iterator[Engine]:
    with make_engine(au.Network.parse(document()), state=state, **options) as engine:
        for part in ("times", "quality", "statistics"):
            getattr(engine._context, part)._now_s = clock
        yield engine


def deliver(engine: Engine, clock: Clock, positions: list[int], delay_s: float = 6.0) -> None:
    """Let tuples arrive, and be processed some seconds later."""
    engine.enqueue("reports", rows(*positions))
    clock.now += delay_s
    engine.drain()


def course(engine: Engine) -> list[tuple[float, float]]:
    """What was delivered in each second with something, and the utility of that."""
    found = engine._context.quality.described("alerts")["history"]
    return [(one["delivered"], one["utility"]) for one in found]


# ── restarts ──


def test_sums_go_on_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    with running(tmp_path, clock) as engine:
        deliver(engine, clock, [40, 50])
        deliver(engine, clock, [60, 10])
        before = engine.stats()["qos"]["alerts"]
    assert before["delivered"] == 3
    assert before["lost"]["delay"] > 0
    with running(tmp_path, clock) as engine:
        found = engine.stats()["qos"]["alerts"]
        assert (found["delivered"], found["lost"]) == (3, before["lost"])
        deliver(engine, clock, [70])
        found = engine.stats()["qos"]["alerts"]
        assert found["delivered"] == 4
        assert found["lost"]["delay"] > before["lost"]["delay"]
    with running(tmp_path, clock) as engine:
        assert engine.stats()["qos"]["alerts"]["delivered"] == 4


def test_the_course_of_utility_goes_on_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    clock.now -= 300  # what is restored must not be in the future
    with running(tmp_path, clock) as engine:
        deliver(engine, clock, [40, 50])
        deliver(engine, clock, [60, 10], 1.0)
    with running(tmp_path, clock) as engine:
        assert course(engine) == [(2.0, 0.5), (1.0, 1.0)]
        deliver(engine, clock, [70])
        assert course(engine) == [(2.0, 0.5), (1.0, 1.0), (1.0, 0.5)]
    with running(tmp_path, clock) as engine:
        assert len(course(engine)) == 3


def test_a_crash_loses_the_statistics_of_the_latest_commits_alone(tmp_path: Path) -> None:
    clock = Clock()
    armed: list[bool] = []

    def fault(point: str) -> None:
        if armed and point == "before-commit":
            raise Crash(point)

    with suppress(Crash), running(tmp_path, clock, fault=fault) as engine:
        deliver(engine, clock, [40, 50])
        deliver(engine, clock, [60])  # its commit writes what is known of the one before
        lost = engine.stats()["qos"]["alerts"]["lost"]["delay"]
        armed.append(True)
        deliver(engine, clock, [70])
    with running(tmp_path, clock) as engine:
        found = engine.stats()["qos"]["alerts"]
        assert found["delivered"] == 2
        assert 0 < found["lost"]["delay"] < lost
        assert engine.stats()["streams"]["reports"]["rate"] > 0
        engine.drain()  # the step that was recorded
        assert engine.stats()["qos"]["alerts"]["delivered"] == 3


def test_statistics_are_written_once_in_a_period(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    written: list[int] = []
    with running(tmp_path, clock) as engine:
        keeper = engine._context.statistics
        assert keeper is not None
        take = keeper.take

        def counted(waiting_since: int) -> KeptStatistics:
            written.append(waiting_since)
            return take(waiting_since)

        monkeypatch.setattr(keeper, "take", counted)
        for _ in range(10):
            deliver(engine, clock, [40], 0.25 * PERIOD_S)
    assert len(written) == 3 + 1  # and at the end


def test_ages_of_what_waits_go_on_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    with running(tmp_path, clock) as engine:
        engine.enqueue("reports", rows(40))
        clock.now += 7
    clock.now += 100  # in which no engine runs
    with running(tmp_path, clock) as engine:
        assert engine._context.times.age_s(0) >= 7
        engine.drain()
        assert engine.stats()["qos"]["alerts"]["delay_s"] >= 7


def test_what_the_loop_costs_is_measured_and_kept(tmp_path: Path) -> None:
    clock = Clock()
    with running(tmp_path, clock, background=True) as engine:
        assert engine.stats()["steps"]["loop_s"] is None
        deliver(engine, clock, [40])
        measured = engine.stats()["steps"]["loop_s"]
        assert 0 < measured < 60
    found = measured_network(au.Network.parse(document()), tmp_path)
    assert found.loop_s == Store(tmp_path).manifest.statistics().loop_s
    assert found.loop_s is not None
    assert measured_machine(found.loop_s).loop_s == found.loop_s
    assert measured_machine(None) == SPARK
    with running(tmp_path, clock) as engine:
        assert engine.stats()["steps"]["loop_s"] == found.loop_s


def test_outputs_that_are_no_more_are_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    with running(tmp_path, clock) as engine:
        deliver(engine, clock, [40, 50])
        engine.modify(remove=["outputs.alerts"])
        clock.now += PERIOD_S
        deliver(engine, clock, [60])
    with sqlite3.connect(tmp_path / "manifest.db") as db:
        names = db.execute("SELECT output FROM output_qos UNION SELECT output FROM qos_second")
        assert {name for (name,) in names} == {"all"}


def test_a_state_directory_of_an_older_version_is_taken_over(tmp_path: Path) -> None:
    clock = Clock()
    with running(tmp_path, clock) as engine:
        deliver(engine, clock, [40])
    with sqlite3.connect(tmp_path / "manifest.db") as db:
        for table in ("arrival_rate", "queue_age", "output_qos", "qos_second"):
            db.execute(f"DROP TABLE {table}")
    with ManifestSnapshot(tmp_path) as manifest:
        assert manifest.statistics() == KeptStatistics()
    with running(tmp_path, clock) as engine:
        assert engine.stats()["qos"]["alerts"]["delivered"] == 0
        deliver(engine, clock, [50])
    assert Store(tmp_path).manifest.statistics().outputs["alerts"][0].delivered == 1


# ── the parts ──


def test_only_seconds_of_the_history_are_restored() -> None:
    graphs = QoS(latency=[(0, 1), (2, 1), (10, 0)])
    before = OutputMonitor(graphs, 0.0)
    for second in (5.0, 100.0, 700.0):
        before.record(second, [(6.0, 10)])
    after = OutputMonitor(graphs, 710.0)
    after.restore(before.sums, before.seconds_since(0), 710.0)
    assert (after.delivered, after.lost) == (30, before.lost)
    assert [one["ago_s"] for one in after.history(710.0)] == [9.0]
    assert [one.at for one in before.seconds_since(100)] == [100, 700]
    assert HISTORY_S < 700


def test_a_rate_goes_on_as_it_was() -> None:
    rates = ArrivalRates()
    for second in range(60):
        rates.arrived("s", 50, float(second))
    kept = rates.kept(62.0)
    assert kept["s"].rate == pytest.approx(50, rel=0.02)
    assert kept["s"].recent == pytest.approx(rates.rate("s", 62.0))
    later = ArrivalRates()
    later.restore(kept, 1_000.0)
    assert later.rate("s", 1_000.0) == pytest.approx(rates.rate("s", 62.0))
    assert later.rate("s", 1_003.0) == pytest.approx(rates.rate("s", 65.0), rel=1e-3)
    assert later.kept(1_000.0)["s"].rate == kept["s"].rate


def test_few_ages_are_kept_and_the_newest_is_among_them() -> None:
    now = itertools.count()
    times = ArrivalTimes(now_s=lambda: 100.0)
    for moment in range(1, 1_000):
        times.arrived(moment, next(now) / 10)
    ages = times.ages(500, 64)
    assert len(ages) <= 64
    assert ages[-1][0] == 999
    assert ages[-1][1] == pytest.approx(100.0 - 99.8)
    assert ages[0][0] > 500
    later = ArrivalTimes(999, lambda: 5_000.0, ages)
    assert later.age_s(998) == pytest.approx(0.2)
    assert later.age_s(600) == pytest.approx(times.age_s(600), abs=1.0)
    assert later.age_s(2_000) == 0.0
    assert ArrivalTimes(2_000, lambda: 5_000.0, ages).age_s(1_500) == 0.0


# ── what uses them ──


def test_analyze_and_simulate_take_measured_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock, state, file = Clock(), tmp_path / "state", tmp_path / "net.json"
    file.write_text(json.dumps(document()))
    with running(state, clock) as engine:
        deliver(engine, clock, [40, 50])
        (rate,) = engine._context.rates.kept(clock.now).values()

    def command(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["auroral", *words, "--state", str(state)])
        with pytest.raises(SystemExit) as done:
            cli.main()
        return (int(done.value.code or 0), *capsys.readouterr())

    code, out, _ = command("analyze", str(file), "--json")
    found = json.loads(out)
    assert code == 0
    assert found["arcs"]["reports"] == pytest.approx(rate.rate)
    assert "rates were measured: reports" in found["notes"][0]
    code, out, _ = command("analyze", str(file), "--rates", "reports=77", "--json")
    assert json.loads(out)["arcs"]["reports"] == 77
    code, out, _ = command("simulate", "network", str(file), "--for", "5")
    assert code == 0
    assert "rates were measured of reports" in out
    with sqlite3.connect(state / "manifest.db") as db:
        db.execute("DELETE FROM arrival_rate")
    code, _, err = command("analyze", str(file))
    assert (code, "MISSING_OPTION" in err) == (2, True)
    code, _, err = command("simulate", "network", str(file))
    assert (code, "MISSING_OPTION" in err) == (2, True)
