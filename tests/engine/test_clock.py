"""Time never goes back, within a run and across restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

import auroral as au
from auroral.engine.runtime.clock import MonotoneClock
from tests.conformance import sparkless

DAY = 86_400_000_000


class Machine:
    """A machine whose clock can be set."""

    def __init__(self) -> None:
        self.wall = 1_000 * DAY
        self.elapsed = 5

    def passes(self, us: int) -> None:
        self.wall += us
        self.elapsed += us

    def clock(self, after: int = 0) -> MonotoneClock:
        return MonotoneClock(
            after=after, wall_us=lambda: self.wall, elapsed_us=lambda: self.elapsed
        )


def test_a_clock_that_is_set_back_goes_on() -> None:
    machine = Machine()
    clock = machine.clock()
    start = clock()
    assert start == machine.wall
    machine.passes(10)
    machine.wall -= DAY
    assert clock() == start + 10
    machine.passes(10)
    assert clock() == start + 20


def test_a_restart_begins_where_the_last_run_had_come_to() -> None:
    machine = Machine()
    last = machine.clock()()
    machine.wall -= DAY
    clock = machine.clock(after=last)
    assert clock() == last
    machine.passes(7)
    assert clock() == last + 7
    clock.not_before(last + 100)
    assert clock() == last + 100
    machine.passes(7)
    assert clock() == last + 107
    clock.not_before(last)
    assert clock() == last + 107


def _counting() -> au.Network:
    return au.Network.parse(
        {
            "network": "counting",
            "streams": {"s": {"schema": {"a": "int"}}},
            "boxes": {
                "pairs": {
                    "box": "aggregate",
                    "input": "s",
                    "order": {"on": "tup#"},
                    "window": {"size": 2, "timeout": 5},
                    "compute": {"c": "count(*)"},
                }
            },
            "outputs": {"pairs": {"from": "pairs"}},
        }
    )


@pytest.mark.parametrize("restart", [False, True])
def test_timeouts_fire_and_lags_are_not_negative(
    restart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    monkeypatch.setattr("time.time_ns", lambda: machine.wall * 1000)
    monkeypatch.setattr("time.clock_gettime_ns", lambda _clock: machine.elapsed * 1000)
    state = tmp_path / "state"
    with sparkless.make_engine(_counting(), state=state) as engine:
        engine.enqueue("s", [{"a": 1}])
        if not restart:
            machine.wall -= DAY
            machine.passes(6_000_000)
            engine._ingest.tick()
            engine.drain()
            assert engine.dequeue("pairs")["c"].to_pylist() == [1]
            assert all(s.get("lag_s", 0) >= 0 for s in engine.stats()["outputs"].values())
            return
    machine.wall -= DAY
    with sparkless.make_engine(_counting(), state=state) as engine:
        machine.passes(6_000_000)
        engine._ingest.tick()
        engine.drain()
        assert engine.dequeue("pairs")["c"].to_pylist() == [1]
        assert all(s.get("lag_s", 0) >= 0 for s in engine.stats()["outputs"].values())
