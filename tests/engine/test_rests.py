"""What sinks have still to get of queries that were removed: after crashes, and all of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.engine import Engine
from auroral.io.sinks.sink import Delivery
from tests.conformance import sparkless
from tests.conformance.delivering import Lasting
from tests.conformance.running import Crash, Faults

from .market import ALERTS, RULES, SUMS, alerts, all_ticks, batch, going_ticks, numbers

MARK = {"mark": "SELECT n FROM ticks WHERE n < 0"}
"""Tells whether a change was made."""


class _Life:
    """An engine that dies at some points, and what is done in it, once each."""

    def __init__(self, state: Path, net: au.Network, crashes: frozenset[int], **options: Any):
        self._state, self._net, self._options = state, net, options
        self.faults = Faults(crashes)
        self._done = 0
        self.sinks: dict[str, Lasting] = {}

    def go(self, *actions: Callable[[Engine], object]) -> list[str]:
        """Do everything; the outputs that there are in the end."""
        while True:
            with (
                suppress(Crash),
                sparkless.make_engine(
                    self._net, state=self._state, fault=self.faults, **self._options
                ) as engine,
            ):
                self._bind(engine)
                while self._done < len(actions):
                    actions[self._done](engine)
                    self._done += 1
                engine.drain()
                return list(engine.stats()["outputs"])

    def _bind(self, engine: Engine) -> None:
        there = {*engine.list_entities()["queries"], *engine.stats()["outputs"]}
        there.update(engine.matches()["query"].to_pylist())
        for name, sink in self.sinks.items():
            if name in there:
                engine.bind_sink(name, sink)

    def bind(self, name: str) -> Callable[[Engine], None]:
        def act(engine: Engine) -> None:
            if name not in self.sinks:
                self.sinks[name] = Lasting()
                engine.bind_sink(name, self.sinks[name])

        return act

    def feed(self, start: int, stop: int) -> Callable[[Engine], None]:
        def act(engine: Engine) -> None:
            engine.enqueue("ticks", batch(start, stop), position=start)

        return act

    def modify(self, done: Callable[[list[str]], bool], **change: Any) -> Callable[[Engine], None]:
        def act(engine: Engine) -> None:
            if not done(list(engine.matches()["query"].to_pylist())):
                engine.modify(**change)

        return act


def _everywhere(tmp_path: Path, net: Callable[[], au.Network], **options: Any) -> Iterator[_Life]:
    """A life with crashes at every fifth point there is, and two after it, until none is left."""
    for point in itertools.count(0, 5):
        state = tmp_path / str(point)
        life = _Life(state, net(), frozenset((point, point + 2)), **options)
        yield life
        if life.faults.passed <= point:
            return


@pytest.mark.parametrize("going", ["SELECT n FROM ticks", SUMS])
def test_the_rest_survives_every_crash(going: str, tmp_path: Path) -> None:
    for life in _everywhere(tmp_path, lambda: going_ticks(going), train=4):
        left = life.go(
            life.bind("going"),
            life.feed(0, 10),
            life.modify(lambda there: "mark" in there, add=MARK, remove=["going"]),
            life.feed(10, 20),
        )
        assert life.sinks["going"].column("n") == list(range(10)), life.faults.at
        assert left == []


@pytest.mark.parametrize("texts", [("SELECT n FROM ticks", SUMS), (SUMS, "SELECT n FROM ticks")])
def test_a_sink_goes_on_after_every_crash(texts: tuple[str, str], tmp_path: Path) -> None:
    for life in _everywhere(tmp_path, lambda: going_ticks(texts[0]), train=4):
        life.go(
            life.bind("going"),
            life.feed(0, 10),
            life.modify(
                lambda there: "mark" in there, add={**MARK, "going": texts[1]}, remove=["going"]
            ),
            life.feed(10, 20),
        )
        assert life.sinks["going"].column("n") == list(range(20)), life.faults.at


def _rules() -> au.Network:
    net = all_ticks()
    net.family("alerts", ALERTS, RULES, "rule")
    return net


def test_families_and_members_leave_their_rest_too(tmp_path: Path) -> None:
    for life in _everywhere(tmp_path, _rules, train=4):
        left = life.go(
            life.bind("alerts"),
            life.bind("alerts[1]"),
            life.bind("alerts[3]"),
            life.feed(0, 20),
            life.modify(lambda there: "alerts[1]" not in there, remove=["alerts[1]"]),
            life.feed(20, 40),
            life.modify(lambda there: "alerts[3]" not in there, remove=["alerts"]),
            life.feed(40, 60),
        )
        found = [*alerts(RULES, (0, 20)), *alerts(RULES[1:], (20, 40))]
        assert sorted(life.sinks["alerts"].column("n")) == sorted(n for _, n in found)
        assert life.sinks["alerts[1]"].column("n") == [n for _, n in alerts(RULES[:1], (0, 20))]
        assert life.sinks["alerts[3]"].column("n") == [n for _, n in alerts(RULES[2:3], (0, 40))]
        assert left == []


def test_an_output_of_the_file_gets_its_rest_after_a_restart(tmp_path: Path) -> None:
    path, state = tmp_path / "going.csv", tmp_path / "state"

    def net(going: bool) -> au.Network:
        found = going_ticks() if going else all_ticks()
        if going:
            found.output("file", "going", sink={"format": "csv", "path": str(path)})
        return found

    with sparkless.make_engine(net(True), state=state, train=3) as engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(remove=["going"])
    assert path.read_text().split() == ["n"]
    with sparkless.make_engine(net(True), state=state, train=3) as engine:
        engine.enqueue("ticks", batch(10, 20))
        engine.drain()
        assert path.read_text().split() == ["n", *map(str, range(10))]
        assert "file" not in engine.stats()["outputs"]


@pytest.mark.parametrize("going", ["SELECT n FROM ticks", SUMS])
def test_several_outputs_of_one_query_get_its_rest(going: str) -> None:
    net = going_ticks(going)
    net.output("second", "going")
    sinks = {"going": Lasting(), "second": Lasting()}
    engine = Engine(net, executor=sparkless.InProcessExecutor(), background=False, train=20)
    for name, sink in sinks.items():
        engine.bind_sink(name, sink)
    with engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(remove=["going"])
        engine.drain()
        assert [sink.column("n") for sink in sinks.values()] == [list(range(10))] * 2
        assert all(sink.closed for sink in sinks.values())


def test_nothing_is_left_when_a_sink_has_its_rest(tmp_path: Path) -> None:
    with sparkless.make_engine(going_ticks(SUMS), state=tmp_path, train=3) as engine:
        for name in ("going", "all"):
            engine.bind_sink(name, Lasting())
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(remove=["going", "all"])
        engine.drain()
        logs, cursors = engine._store.names()
        assert logs == []
        assert [reader for _, reader in cursors if reader.startswith(("rest", "output"))] == []
        assert not engine._queries.pending.outputs


# ── sinks that are bound again, and sinks that ask for changes ──


def test_a_rest_waits_for_its_sink_though_the_next_query_goes_too(tmp_path: Path) -> None:
    sink = Lasting()
    text = "SELECT n FROM ticks"
    with sparkless.make_engine(going_ticks(), train=3, state=tmp_path) as engine:
        engine.bind_sink("going", sink)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(remove=["going"], add={"going": text})
    with sparkless.make_engine(going_ticks(), train=3, state=tmp_path) as engine:
        engine.modify(remove=["going"])
        engine.bind_sink("going", sink)
        engine.drain()
        assert sink.column("n") == list(range(10))
        assert sink.closed
        assert [reader for _, reader in engine._store.names()[1] if "rest" in reader] == []


def test_a_sink_that_is_bound_again_gets_nothing_that_others_took(tmp_path: Path) -> None:
    sink = Lasting()
    with sparkless.make_engine(going_ticks(), train=3, state=tmp_path) as engine:
        engine.bind_sink("going", sink)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(remove=["going"])
        engine.modify(add={"going": "SELECT n FROM ticks"})
        engine.enqueue("ticks", batch(10, 13))
    with sparkless.make_engine(going_ticks(), train=3, state=tmp_path) as engine:
        engine.drain()
        engine.dequeue_all("ticks")
        engine.bind_sink("going", sink)
        engine.enqueue("ticks", batch(13, 15))
        engine.drain()
        assert sink.column("n") == [*range(10), 13, 14]


def test_a_sink_that_gets_the_rest_of_another_may_remove_its_query() -> None:
    with sparkless.make_engine(going_ticks(), train=3) as engine:
        got: list[int] = []

        def deliver(delivery: Delivery) -> None:
            got.extend(numbers(delivery.table))
            if "going" in engine.list_entities()["queries"]:
                engine.modify(remove=["going"])

        engine.bind_sink("going", deliver)
        engine.enqueue("ticks", batch(0, 3))
        engine.modify(remove=["going"], add={"going": "SELECT n FROM ticks"})
        engine.enqueue("ticks", batch(3, 6))
        engine.drain()
        assert got == [0, 1, 2]
        assert [reader for _, reader in engine._store.names()[1] if "rest" in reader] == []


def test_a_sink_is_not_called_again_before_it_has_returned() -> None:
    with sparkless.make_engine(going_ticks(), train=3) as engine:
        got: list[int] = []

        def deliver(delivery: Delivery) -> None:
            got.extend(numbers(delivery.table))
            engine.wait(0)

        engine.bind_sink("going", deliver)
        engine.enqueue("ticks", batch(0, 6))
        engine.drain()
        assert got == list(range(6))
