"""Queries that run as boxes or have sinks come and go at once, whatever still waits."""

from __future__ import annotations

import itertools
import json
import threading
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

from .market import ALERTS, BOXED, NEWS, PAIRS, RULES, alerts, all_ticks, batch, in_thread, numbers

_LONG_S = 60
SUMS = "SELECT sum(n) AS n FROM ticks [ROWS 1]"
"""Every tick, by boxes."""
MARK = {"mark": "SELECT n FROM ticks WHERE n < 0"}
"""Tells whether a change was made."""


@pytest.fixture(autouse=True)
def _sparkless(monkeypatch: pytest.MonkeyPatch) -> None:
    sparkless.no_spark(monkeypatch)


def _network(going: str = "SELECT n FROM ticks") -> au.Network:
    net = all_ticks()
    net.query("going", going)
    return net


class _Blocked(Lasting):
    """Takes nothing before it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.called, self.go_on = threading.Event(), threading.Event()

    def write(self, delivery: Delivery) -> int:
        self.called.set()
        assert self.go_on.wait(_LONG_S)
        return super().write(delivery)


@pytest.mark.parametrize("going", ["SELECT n FROM ticks", SUMS])
@pytest.mark.parametrize("there", [True, False])
def test_a_change_is_made_while_a_sink_is_called(going: str, there: bool) -> None:
    """What had arrived is for the query that goes; its sink gets it later, and is closed."""
    sink = _Blocked()
    with sparkless.make_engine(_network(going), train=5, background=True) as engine:
        engine.bind_sink("going", sink)
        engine.enqueue("ticks", batch(0, 10))
        assert sink.called.wait(_LONG_S)
        engine.enqueue("ticks", batch(10, 20))
        other = {"going": "SELECT n FROM ticks WHERE n > 30"} if there else {}
        engine.modify(
            add={"boxed": BOXED, "late": "SELECT n FROM ticks", **other}, remove=["going"]
        )
        engine.enqueue("ticks", batch(20, 40))
        assert engine.list_entities()["queries"][-1] == "boxed"
        assert engine.stats()["outputs"]["going"]["left"] >= 0
        sink.go_on.set()
        engine.drain()
        assert numbers_of(sink) == [*range(20), *(range(31, 40) if there else ())]
        assert sink.closed is not there
        assert numbers(engine.dequeue("late")) == list(range(20, 40))
        assert engine.dequeue("boxed").num_rows == 20
        assert "left" not in engine.stats()["outputs"].get("going", {})


def numbers_of(sink: Lasting) -> list[int]:
    return [row["n"] for row in sink.rows]


@pytest.mark.parametrize("texts", [("SELECT n FROM ticks", SUMS), (SUMS, "SELECT n FROM ticks")])
def test_another_of_the_same_name_has_nothing_of_the_one_before(texts: tuple[str, str]) -> None:
    before, after = texts
    sink = Lasting()
    with sparkless.make_engine(_network(before), train=3) as engine:
        engine.bind_sink("going", sink)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(remove=["going"])
        with pytest.raises(au.UsageError, match="UNKNOWN_OUTPUT"):
            engine.dequeue("going")
        engine.modify(add={"going": after})
        assert engine.dequeue("going").num_rows == 0
        engine.enqueue("ticks", batch(10, 20))
        engine.drain()
        assert numbers(engine.dequeue("going")) == list(range(10, 20))
        assert numbers_of(sink) == list(range(10))
        assert sink.closed
        assert engine._store.counters["going", "out"] == 10, "the rest is nobody's output"
        more = Lasting()
        engine.bind_sink("going", more)
        engine.enqueue("ticks", batch(20, 30))
        engine.modify(remove=["going"], add={"going": before})
        engine.enqueue("ticks", batch(30, 40))
        engine.modify(remove=["going"], add={"going": after})
        engine.enqueue("ticks", batch(40, 50))
        engine.drain()
        assert numbers_of(more) == list(range(20, 50)), "one sink for all three"
        assert not more.closed


def test_another_sink_waits_until_the_one_before_has_everything(tmp_path: Path) -> None:
    path = tmp_path / "going.jsonl"
    with sparkless.make_engine(_network(), train=3) as engine:
        for start in (0, 10):
            engine.bind_sink("going", au.JsonlSink(path))
            engine.enqueue("ticks", batch(start, start + 10))
            engine.modify(remove=["going"])
            engine.modify(add={"going": "SELECT n FROM ticks"})
        engine.drain()
    found = [json.loads(line)["n"] for line in path.read_text().splitlines()]
    assert found == list(range(20))


def test_a_sink_cannot_take_the_place_of_one_that_still_gets_something() -> None:
    refused: list[au.UsageError] = []
    with sparkless.make_engine(_network(), train=3) as engine:

        def deliver(_delivery: Delivery) -> None:
            if not refused:
                engine.modify(remove=["going"])
                engine.modify(add={"going": "SELECT n FROM ticks"})
                with pytest.raises(au.UsageError, match="NOT_HERE") as error:
                    engine.bind_sink("going", Lasting())
                refused.append(error.value)

        engine.bind_sink("all", deliver)
        engine.bind_sink("going", Lasting())
        engine.enqueue("ticks", batch(0, 10))
        engine.drain()
    assert "a sink cannot give going a sink while another still gets" in str(refused[0])


def test_boxes_that_are_to_come_have_a_name_already() -> None:
    with sparkless.make_engine(_network(), train=3) as engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"boxed": BOXED, "sunk": SUMS})
        assert engine.dequeue("boxed").schema.names == ["n"]
        assert engine.describe("boxed")["kind"] == "query"
        assert engine.stats()["queries"]["boxed"] == {"sql": BOXED, "shared": False}
        sink = Lasting()
        engine.bind_sink("sunk", sink)
        engine.enqueue("ticks", batch(10, 15))
        engine.modify(remove=["sunk"])
        engine.enqueue("ticks", batch(15, 20))
        engine.drain()
        assert engine.dequeue("boxed").num_rows == 10
        assert numbers_of(sink) == list(range(10, 15)), "it had not begun when it was removed"
        assert sink.closed


def test_what_comes_and_goes_at_one_moment_leaves_nothing() -> None:
    with sparkless.make_engine(_network(), train=3) as engine:
        engine.enqueue("ticks", batch(0, 10))
        for text in (SUMS, "SELECT n FROM ticks"):
            engine.modify(add={"brief": text})
            sink = Lasting()
            engine.bind_sink("brief", sink)
            engine.modify(remove=["brief"])
            assert sink.closed
        engine.enqueue("ticks", batch(10, 20))
        engine.drain()
        assert numbers(engine.dequeue("all")) == list(range(20))
        assert [log for log in engine._store.names()[0] if "brief" in log or "rest" in log] == []
        assert [r for _, r in engine._store.names()[1] if "brief" in r or "rest" in r] == []


def test_boxes_come_at_their_moment_though_queries_came_later() -> None:
    net = _network()
    net.stream("other", "sym string, o bigint")
    third = "SELECT ticks.n FROM other [ROWS 9], ticks [ROWS 9] WHERE ticks.sym = other.sym"
    with sparkless.make_engine(net, train=5) as engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(add={"boxed": SUMS})
        engine.modify(add={"pairs": PAIRS})
        engine.enqueue("ticks", batch(10, 20))
        engine.modify(add={"third": third, "late": SUMS})
        engine.enqueue("news", NEWS)
        engine.modify(remove=["boxed"], add={"boxed": BOXED})
        engine.enqueue("ticks", batch(20, 23))
        engine.drain()
        assert engine.dequeue("boxed")["n"].to_pylist() == [1, 1, 1]
        assert numbers(engine.dequeue("late")) == [20, 21, 22]
        assert set(numbers(engine.dequeue("pairs"))) == {*range(11, 20), 20, 21, 22}


def _both(first: Callable[[], object], then: Callable[[], object]) -> Callable[..., None]:
    """A sink that does something when it is called first."""
    calls = itertools.count()

    def deliver(_delivery: Delivery) -> None:
        if next(calls) == 0:
            first()
            then()

    return deliver


@pytest.mark.parametrize("inner", ["boxed", "sink"])
@pytest.mark.parametrize("background", [False, True])
def test_a_sink_may_change_what_others_have_changed(inner: str, background: bool) -> None:
    net = _network()
    net.output("raw", "ticks")
    change: dict[str, Any] = {"remove": ["going"]} if inner == "sink" else {"add": {"inner": BOXED}}
    with sparkless.make_engine(net, train=5, background=background) as engine:
        more = lambda: engine.enqueue("ticks", batch(10, 20))  # noqa: E731
        engine.bind_sink("all", _both(more, lambda: engine.modify(**change)))
        engine.bind_sink("going", lambda _delivery: None)
        engine.modify(add={"boxed": SUMS})
        engine.enqueue("ticks", batch(0, 10))
        engine.drain()
        engine.enqueue("ticks", batch(20, 23))
        engine.drain()
        assert numbers(engine.dequeue("boxed")) == list(range(23))
        if inner == "boxed":
            assert engine.dequeue("inner").num_rows >= 3


def test_an_engine_ends_while_a_sink_is_to_get_more() -> None:
    sink = _Blocked()
    engine = Engine(_network(), spark=sparkless.NoSession())  # type: ignore[arg-type]
    engine.start()
    engine.bind_sink("going", sink)
    engine.enqueue("ticks", batch(0, 10))
    assert sink.called.wait(_LONG_S)
    engine.modify(remove=["going"])
    ending = in_thread(engine.shutdown)
    assert engine._loop._stopping.wait(_LONG_S)
    sink.go_on.set()
    ending.join(_LONG_S)
    assert not ending.is_alive()
    assert engine._loop.failure is None
    assert sink.closed


# ── restarts ──


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
    for life in _everywhere(tmp_path, lambda: _network(going), train=4):
        left = life.go(
            life.bind("going"),
            life.feed(0, 10),
            life.modify(lambda there: "mark" in there, add=MARK, remove=["going"]),
            life.feed(10, 20),
        )
        assert numbers_of(life.sinks["going"]) == list(range(10)), life.faults.at
        assert left == []


@pytest.mark.parametrize("texts", [("SELECT n FROM ticks", SUMS), (SUMS, "SELECT n FROM ticks")])
def test_a_sink_goes_on_after_every_crash(texts: tuple[str, str], tmp_path: Path) -> None:
    for life in _everywhere(tmp_path, lambda: _network(texts[0]), train=4):
        life.go(
            life.bind("going"),
            life.feed(0, 10),
            life.modify(
                lambda there: "mark" in there, add={**MARK, "going": texts[1]}, remove=["going"]
            ),
            life.feed(10, 20),
        )
        assert numbers_of(life.sinks["going"]) == list(range(20)), life.faults.at


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
        assert sorted(numbers_of(life.sinks["alerts"])) == sorted(n for _, n in found)
        assert numbers_of(life.sinks["alerts[1]"]) == [n for _, n in alerts(RULES[:1], (0, 20))]
        assert numbers_of(life.sinks["alerts[3]"]) == [n for _, n in alerts(RULES[2:3], (0, 40))]
        assert left == []


def test_an_output_of_the_file_gets_its_rest_after_a_restart(tmp_path: Path) -> None:
    path, state = tmp_path / "going.csv", tmp_path / "state"

    def net(going: bool) -> au.Network:
        found = _network() if going else all_ticks()
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
    net = _network(going)
    net.output("second", "going")
    sinks = {"going": Lasting(), "second": Lasting()}
    engine = Engine(net, spark=sparkless.NoSession(), background=False, train=20)  # type: ignore[arg-type]
    for name, sink in sinks.items():
        engine.bind_sink(name, sink)
    with engine:
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(remove=["going"])
        engine.drain()
        assert [numbers_of(sink) for sink in sinks.values()] == [list(range(10))] * 2
        assert all(sink.closed for sink in sinks.values())


def test_nothing_is_left_when_a_sink_has_its_rest(tmp_path: Path) -> None:
    with sparkless.make_engine(_network(SUMS), state=tmp_path, train=3) as engine:
        for name in ("going", "all"):
            engine.bind_sink(name, Lasting())
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(remove=["going", "all"])
        engine.drain()
        logs, cursors = engine._store.names()
        assert logs == []
        assert [reader for _, reader in cursors if reader.startswith(("rest", "output"))] == []
        assert not engine._queries.rests.outputs


# ── sinks that are bound again, and sinks that ask for changes ──


def test_a_rest_waits_for_its_sink_though_the_next_query_goes_too(tmp_path: Path) -> None:
    sink = Lasting()
    text = "SELECT n FROM ticks"
    with sparkless.make_engine(_network(), train=3, state=tmp_path) as engine:
        engine.bind_sink("going", sink)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(remove=["going"], add={"going": text})
    with sparkless.make_engine(_network(), train=3, state=tmp_path) as engine:
        engine.modify(remove=["going"])
        engine.bind_sink("going", sink)
        engine.drain()
        assert numbers_of(sink) == list(range(10))
        assert sink.closed
        assert [reader for _, reader in engine._store.names()[1] if "rest" in reader] == []


def test_a_sink_that_is_bound_again_gets_nothing_that_others_took(tmp_path: Path) -> None:
    sink = Lasting()
    with sparkless.make_engine(_network(), train=3, state=tmp_path) as engine:
        engine.bind_sink("going", sink)
        engine.enqueue("ticks", batch(0, 10))
        engine.modify(remove=["going"])
        engine.modify(add={"going": "SELECT n FROM ticks"})
        engine.enqueue("ticks", batch(10, 13))
    with sparkless.make_engine(_network(), train=3, state=tmp_path) as engine:
        engine.drain()
        engine.dequeue_all("ticks")
        engine.bind_sink("going", sink)
        engine.enqueue("ticks", batch(13, 15))
        engine.drain()
        assert numbers_of(sink) == [*range(10), 13, 14]


def test_a_sink_that_gets_the_rest_of_another_may_remove_its_query() -> None:
    with sparkless.make_engine(_network(), train=3) as engine:
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
    with sparkless.make_engine(_network(), train=3) as engine:
        got: list[int] = []

        def deliver(delivery: Delivery) -> None:
            got.extend(numbers(delivery.table))
            engine.wait(0)

        engine.bind_sink("going", deliver)
        engine.enqueue("ticks", batch(0, 6))
        engine.drain()
        assert got == list(range(6))
