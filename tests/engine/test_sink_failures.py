"""A sink that fails stops alone: others go on, and what it has not got waits for another."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.engine import Engine
from auroral.io.sinks.sink import Delivery
from tests.conformance import sparkless
from tests.conformance.delivering import Lasting

from .market import SUMS, above, all_ticks, batch, going_ticks, numbers


class Failing(Lasting):
    """Takes half of what it is given, and raises, as often as it is told to."""

    def __init__(self, times: int = 1):
        super().__init__()
        self.times = times

    def write(self, delivery: Delivery) -> int:
        if not self.times:
            return super().write(delivery)
        self.times -= 1
        self.rows.extend(delivery.table.to_pylist()[: delivery.table.num_rows // 2])
        raise OSError("no room")


def drained(engine: Engine, told: str) -> None:
    """Everything is done, and who failed is told."""
    with pytest.raises(au.SinkError, match=f"SINK_FAILED: output {told}"):
        engine.drain(timeout_s=60)


@pytest.mark.parametrize("background", [False, True])
def test_others_go_on_and_another_sink_takes_the_rest(background: bool) -> None:
    net = all_ticks()
    net.query("dear", "SELECT n FROM ticks WHERE price > 10")
    net.query("read", "SELECT n FROM ticks WHERE price > 15")
    failing, well = Failing(), Lasting()
    with sparkless.make_engine(net, background=background) as engine:
        engine.bind_sink("all", failing)
        engine.bind_sink("dear", well)
        engine.enqueue("ticks", batch(0, 5))
        drained(engine, "all: OSError: no room")
        engine.enqueue("ticks", batch(5, 9))
        drained(engine, "all")
        assert failing.times == 0
        assert failing.rows == []  # what it had written of that does not count
        assert well.column("n") == above(10, (0, 9))
        assert numbers(engine.dequeue("read")) == above(15, (0, 9))
        outputs = engine.stats()["outputs"]
        assert outputs["all"]["failed"] == "OSError: no room"
        assert (outputs["all"]["out"], outputs["all"]["waiting"]) == (0, 9)
        assert "failed" not in outputs["dear"]
        engine.bind_sink("all", failing)
        engine.enqueue("ticks", batch(9, 12))
        engine.drain()
        assert failing.column("n") == list(range(12))
        assert "failed" not in engine.stats()["outputs"]["all"]


def test_the_end_is_the_end_for_others() -> None:
    net = au.Network("ends")
    stream = net.stream("ticks", "n bigint, sym string, price double", progress=au.Ordered("n"))
    net.output("sums", stream.aggregate(au.Order("n"), au.Window(size=10), c="count(*)", name="w"))
    net.query("all", "SELECT n FROM ticks")
    with sparkless.make_engine(net) as engine:
        engine.bind_sink("all", Failing())
        engine.enqueue("ticks", [{"n": 1}, {"n": 2}])
        with pytest.raises(au.SinkError):
            engine.finish()
        assert engine.ended
        assert engine.dequeue("sums")["c"].to_pylist() == [2]


def test_leaving_the_block_tells_of_it() -> None:
    session: Any = sparkless.InProcessExecutor()
    engine = au.Engine(all_ticks(), executor=session, background=False).__enter__()
    engine.bind_sink("all", Failing())
    engine.enqueue("ticks", batch(0, 3))
    drained(engine, "all")
    with pytest.raises(au.SinkError, match="output all: OSError: no room"):
        engine.__exit__(None, None, None)


def test_the_sink_of_an_output_is_replaced_while_it_runs(tmp_path: Path) -> None:
    net = au.Network("market")
    schema = "n bigint, sym string, price double"
    net.output("o", net.stream("ticks", schema).filter("n >= 0", name="f"))

    class Torn(au.CsvSink):
        def write(self, delivery: Delivery) -> Any:
            super().write(delivery)
            raise OSError("no room")

    file, other = tmp_path / "o.csv", tmp_path / "other.jsonl"
    session: Any = sparkless.InProcessExecutor()
    engine = au.Engine(net, executor=session, background=False)
    engine.bind_sink("o", au.CsvSink(file, schema))
    with engine:
        engine.enqueue("ticks", batch(1, 3))
        engine.drain()
        with pytest.raises(au.UsageError, match="HAS_SINK"):
            engine.bind_sink("o", Torn(file, schema))
    whole = file.read_text()
    engine = au.Engine(net, executor=session, background=False)
    engine.bind_sink("o", Torn(file, schema))
    with engine:
        engine.enqueue("ticks", batch(1, 3))
        drained(engine, "o")
        assert file.read_text() == "n,sym,price\n"
        engine.bind_sink("o", Torn(file, schema))
        drained(engine, "o")
        engine.bind_sink("o", au.CsvSink(file, schema))
        engine.drain()
        assert file.read_text() == whole
        engine.enqueue("ticks", batch(3, 4))
        engine.drain()
        assert file.read_text().splitlines()[-1].startswith("3,")
        with pytest.raises(au.UsageError, match="HAS_SINK"):
            engine.bind_sink("o", au.JsonlSink(other))


class Full(au.JsonlSink):
    """Has room for some deliveries."""

    room = 99

    def write(self, delivery: Delivery) -> Any:
        position = super().write(delivery)
        if not self.room:
            raise OSError("no room")
        self.room -= 1
        return position

    @property
    def numbers(self) -> list[int]:
        return [int(line[5:-1]) for line in Path(self.path).read_text().splitlines()]


def test_the_rest_may_go_to_another_file_and_back(tmp_path: Path) -> None:
    one, other = Full(tmp_path / "one.jsonl"), Full(tmp_path / "other.jsonl")
    state = tmp_path / "state"
    with sparkless.make_engine(all_ticks(), state=state) as engine:
        engine.bind_sink("all", one)
        engine.enqueue("ticks", batch(0, 3))
        engine.drain()
        one.room = 0
        engine.enqueue("ticks", batch(3, 6))
        drained(engine, "all")
        engine.bind_sink("all", other)
        engine.drain()
        assert (one.numbers, other.numbers) == ([0, 1, 2], [3, 4, 5])
        other.room = 0
        engine.enqueue("ticks", batch(6, 9))
        drained(engine, "all")
    one.room = other.room = 9
    with sparkless.make_engine(all_ticks(), state=state) as engine:
        with pytest.raises(au.StateError, match="SINK_CHANGED"):
            engine.bind_sink("all", Full(tmp_path / "third.jsonl"))
        engine.bind_sink("all", one)
        engine.drain()
        assert (one.numbers, other.numbers) == ([0, 1, 2, 6, 7, 8], [3, 4, 5])
        one.room = 0
        engine.enqueue("ticks", batch(9, 10))
        drained(engine, "all")
        engine.bind_sink("all", other)
        engine.drain()
    assert (one.numbers, other.numbers) == ([0, 1, 2, 6, 7, 8], [3, 4, 5, 9])


def test_an_interrupted_sink_gets_it_again() -> None:
    class Interrupted(Lasting):
        times = 1

        def write(self, delivery: Delivery) -> int:
            found = super().write(delivery)
            if self.times:
                self.times -= 1
                raise KeyboardInterrupt
            return found

    sink = Interrupted()
    with sparkless.make_engine(all_ticks()) as engine:
        engine.bind_sink("all", sink)
        engine.enqueue("ticks", batch(0, 3))
        with pytest.raises(KeyboardInterrupt):
            engine.drain()
        engine.drain()
        assert sink.column("n") == [0, 1, 2]


def test_what_one_raises_is_not_put_on_the_next() -> None:
    after = Lasting()
    with sparkless.make_engine(going_ticks()) as engine:

        def hand_over(_delivery: Delivery) -> None:
            engine.modify(remove=["going"])
            engine.modify(add={"going": "SELECT n FROM ticks"})
            engine.bind_sink("going", after)
            raise ValueError("enough")

        engine.bind_sink("going", hand_over)
        engine.enqueue("ticks", batch(0, 3))
        drained(engine, "going: ValueError: enough")
        engine.enqueue("ticks", batch(3, 6))
        engine.drain()
        assert after.column("n") == [3, 4, 5]


def test_a_sink_that_cannot_be_opened_leaves_no_other_open() -> None:
    class Closed(Lasting):
        def open(self, position: Any | None) -> None:
            raise OSError("closed")

    well = Lasting()
    session: Any = sparkless.InProcessExecutor()
    engine = au.Engine(going_ticks(), executor=session, background=False)
    engine.bind_sink("all", well)
    engine.bind_sink("going", Closed())
    with pytest.raises(OSError, match="closed"):
        engine.start()
    assert well.closed


@pytest.mark.parametrize("going", ["SELECT n FROM ticks", SUMS])
def test_a_query_that_goes_leaves_the_rest(going: str) -> None:
    failing = Failing()
    with sparkless.make_engine(going_ticks(going)) as engine:
        engine.bind_sink("going", failing)
        engine.enqueue("ticks", batch(0, 4))
        drained(engine, "going")
        engine.modify(remove=["going"])
        engine.enqueue("ticks", batch(4, 6))
        drained(engine, "going")
        assert engine.stats()["outputs"]["going"]["left"] >= 4  # those in its log
        engine.modify(add={"going": "SELECT n FROM ticks WHERE n > 7"})
        engine.enqueue("ticks", batch(6, 9))
        drained(engine, "going")
        engine.bind_sink("going", failing)
        engine.drain()
        assert failing.column("n") == [0, 1, 2, 3, 8]
        assert numbers(engine.dequeue("all")) == list(range(9))


def test_a_query_that_went_and_does_not_come_again() -> None:
    failing = Failing()
    with sparkless.make_engine(going_ticks()) as engine:
        engine.bind_sink("going", failing)
        engine.enqueue("ticks", batch(0, 4))
        drained(engine, "going")
        engine.modify(remove=["going"])
        engine.bind_sink("going", failing)
        engine.drain()
        assert failing.column("n") == [0, 1, 2, 3]
        assert failing.closed
        assert "going" not in engine.stats()["outputs"]


def test_the_next_start_goes_on(tmp_path: Path) -> None:
    failing = Failing(2)
    for more in range(3):
        with sparkless.make_engine(all_ticks(), state=tmp_path) as engine:
            engine.bind_sink("all", failing)
            engine.enqueue("ticks", batch(2 * more, 2 * more + 2))
            if more < 2:
                drained(engine, "all")
            else:
                engine.drain()
    assert failing.column("n") == list(range(6))


def test_one_that_ends_its_query_and_fails_is_told_once() -> None:
    with sparkless.make_engine(going_ticks()) as engine:

        def give_up(_delivery: Delivery) -> None:
            engine.modify(remove=["going"])
            raise ValueError("enough")

        engine.bind_sink("going", give_up)
        engine.enqueue("ticks", batch(0, 4))
        drained(engine, "going: ValueError: enough")
        engine.drain()
        assert "going" not in engine.list_entities()["queries"]
        assert numbers(engine.dequeue("all")) == [0, 1, 2, 3]


def test_one_that_cannot_be_closed_is_told(tmp_path: Path) -> None:
    class Stuck(Lasting):
        def close(self) -> None:
            super().close()
            raise OSError("stuck")

    stuck, well = Stuck(), Lasting()
    with sparkless.make_engine(going_ticks(), state=tmp_path) as engine:
        engine.bind_sink("going", stuck)
        engine.bind_sink("all", well)
        engine.enqueue("ticks", batch(0, 4))
        engine.drain()
        engine.modify(remove=["going"])
        engine.enqueue("ticks", batch(4, 6))
        drained(engine, "going: OSError: stuck")
        engine.drain()
        assert stuck.column("n") == [0, 1, 2, 3]
        assert well.column("n") == list(range(6))
    assert well.closed


def test_a_mistake_in_what_a_sink_asks_for_is_its_own() -> None:
    with sparkless.make_engine(all_ticks()) as engine:
        engine.bind_sink("all", lambda _: engine.modify(remove=["nobody"]))
        engine.enqueue("ticks", batch(0, 2))
        drained(engine, "all: UNKNOWN_QUERY")
        engine.modify(add={"more": "SELECT n FROM ticks"})
        engine.enqueue("ticks", batch(2, 4))
        drained(engine, "all")
        assert numbers(engine.dequeue("more")) == [2, 3]


@pytest.mark.parametrize("seed", range(30))
def test_whatever_fails_when_each_gets_everything_once(seed: int, tmp_path: Path) -> None:
    """Sinks fail, queries are replaced, engines are started again: as if nothing had failed."""
    chance = random.Random(seed)
    sinks = {name: Failing(0) for name in ("all", "going", "family")}
    net = going_ticks(chance.choice(["SELECT n FROM ticks", SUMS]))
    rows = [{"key": key, "least": 0} for key in "ab"]
    net.family("family", "SELECT n FROM ticks WHERE n >= :least", rows, key="key")
    fed = 0
    for _ in range(chance.randint(1, 3)):
        with sparkless.make_engine(net, state=tmp_path, train=chance.randint(1, 9)) as engine:
            for name, sink in sinks.items():
                engine.bind_sink(name, sink)
            for _ in range(chance.randint(1, 8)):
                more = chance.randint(1, 5)
                engine.enqueue("ticks", batch(fed, fed + more))
                fed += more
                sinks[chance.choice(list(sinks))].times = chance.randint(0, 2)
                if chance.random() < 0.3:
                    engine.modify(remove=["going"], add={"going": "SELECT n FROM ticks"})
                if chance.random() < 0.7:
                    mend(engine, sinks, chance.random())
            for sink in sinks.values():
                sink.times = 0
            mend(engine, sinks, 1)
            engine.drain()
    assert sinks["all"].column("n") == list(range(fed))
    assert sinks["going"].column("n") == list(range(fed))
    assert sinks["family"].column("n") == [n for n in range(fed) for _ in "ab"]


def mend(engine: Engine, sinks: dict[str, Failing], share: float) -> None:
    """Bind some of those that failed again."""
    try:
        engine.drain()
    except au.SinkError:
        failed = [n for n, output in engine.stats()["outputs"].items() if "failed" in output]
        for name in failed[: max(1, round(share * len(failed)))]:
            engine.bind_sink(name, sinks[name])
