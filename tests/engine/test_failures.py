"""Things that fail without a crash, and what must still hold afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import auroral as au
from auroral.engine.ingest.streaming import StreamReader
from auroral.io.sinks.callback import CallbackSink
from auroral.io.sinks.csv import CsvSink
from auroral.io.sources.iterable import IterableSource

if TYPE_CHECKING:
    from tests.conftest import MakeEngine

pytestmark = pytest.mark.spark


def network() -> au.Network:
    net = au.Network("failures")
    net.output("o", net.stream("s", "a int").filter("a >= 0", name="f"))
    return net


def ints(*values: int) -> list[dict[str, int]]:
    return [{"a": value} for value in values]


@pytest.mark.parametrize("point", ["written", "before-commit"])
def test_an_enqueue_that_fails_takes_nothing_and_loses_nothing(
    make_engine: MakeEngine, tmp_path: Path, point: str
) -> None:
    armed = [False]

    def fault(at: str) -> None:
        if armed[0] and at == point:
            raise au.RunError("CANNOT_WRITE", "the disk is full")

    with make_engine(network(), state=tmp_path, fault=fault) as engine:
        engine.enqueue("s", ints(1))
        armed[0] = True
        with pytest.raises(au.RunError, match="the disk is full"):
            engine.enqueue("s", pa.table({"a": pa.array(range(2, 30_000), pa.int32())}))
        armed[0] = False
        engine.enqueue("s", ints(7))
        engine.drain()
        assert engine.dequeue("o")["a"].to_pylist() == [1, 7]


def test_a_torn_journal_does_not_hide_what_comes_later(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    class Crash(BaseException):
        pass

    def crash_after(value: int) -> None:
        with make_engine(network(), state=tmp_path) as engine:
            engine.enqueue("s", ints(value))
            raise Crash

    for value in (1, 2):
        with pytest.raises(Crash):
            crash_after(value)
        journal = tmp_path / "journal"
        if value == 1:
            # The process died while it wrote the next entry.
            journal.write_bytes(journal.read_bytes() + b"\x01\x00\x00\x00torn")
    with make_engine(network(), state=tmp_path) as engine:
        engine.drain()
        assert engine.dequeue("o")["a"].to_pylist() == [1, 2]


def test_a_position_is_taken_once_whatever_it_is_made_of(make_engine: MakeEngine) -> None:
    with make_engine(network()) as engine:
        for _ in range(2):
            engine.enqueue("s", ints(1), position=(0, 5))
        engine.drain()
        assert engine.dequeue("o").num_rows == 1


@au.function("int")
def careful(a: pa.Array) -> pa.Array:
    if pc.any(pc.equal(a, 13)).as_py():
        raise ValueError("thirteen")
    return a


@pytest.mark.parametrize("driver_bytes", [0, 1 << 30])
def test_both_paths_of_results_count_and_bury_alike(
    make_engine: MakeEngine, driver_bytes: int
) -> None:
    net = au.Network("paths")
    stream = net.stream("s", "a int, at timestamp")
    mapped = stream.filter("a > 1", name="f").map(keep=["at"], name="m", b=careful)
    net.output("o", mapped.filter("b % 2 = 1", name="odd"))
    rows = [{"a": i, "at": f"{1 + 500 * (i % 20):04d}-01-01T00:00:00Z"} for i in range(40)]
    with make_engine(net, driver_bytes=driver_bytes) as engine:
        engine.enqueue("s", rows)
        engine.drain()
        stats = engine.stats()
        assert {n: a["tuples"] for n, a in stats["arcs"].items() if "rest" not in n} == {
            "f": 38,
            "m": 37,
            "odd": 18,
        }
        assert stats["boxes"]["m"]["dead"] == 1
        out = engine.dequeue("o").to_pylist()
        assert [row["b"] for row in out] == [i for i in range(3, 40, 2) if i != 13]
        assert out[0]["at"].year == 1501


def test_python_functions_see_each_tuple_once(make_engine: MakeEngine, tmp_path: Path) -> None:
    seen = tmp_path / "seen"

    @au.function("int")
    def noted(a: pa.Array) -> pa.Array:
        with seen.open("a") as file:
            file.writelines(f"{value}\n" for value in a.to_pylist())
        return a

    net = au.Network("once")
    net.output("o", net.stream("s", "a int").filter("a > 4").map(b=noted))
    with make_engine(net) as engine:
        engine.enqueue("s", ints(*range(50)))
        engine.drain()
        assert engine.dequeue("o").num_rows == 45
    assert sorted(map(int, seen.read_text().split())) == list(range(5, 50))


def test_other_inputs_than_before_are_refused(make_engine: MakeEngine, tmp_path: Path) -> None:
    net = au.Network("two")
    a, b = net.stream("a", "n int"), net.stream("b", "n int")
    net.output("o", a.union(b))

    def sources(*names: str) -> list[Any]:
        schema = net.streams["a"].schema_
        return [IterableSource(name, [{"n": 1}, {"n": 2}], schema) for name in names]

    with make_engine(net, state=tmp_path, bind=sources("a", "b")) as engine:
        engine.drain()
    for names in (("b", "a"), ("a",)):
        with (
            pytest.raises(au.UsageError, match="SOURCE_CHANGED"),
            make_engine(net, state=tmp_path, bind=sources(*names)),
        ):
            pass


def test_another_sink_than_before_is_refused(make_engine: MakeEngine, tmp_path: Path) -> None:
    net = network()
    schema = net.streams["s"].schema_
    state = tmp_path / "state"
    precious = tmp_path / "precious.csv"
    precious.write_text("do not touch\n" * 10)
    with make_engine(net, state=state, bind=[("o", CsvSink(tmp_path / "o.csv", schema))]) as engine:
        engine.enqueue("s", ints(1))
        engine.drain()
    with (
        pytest.raises(au.StateError, match="SINK_CHANGED"),
        make_engine(net, state=state, bind=[("o", CsvSink(precious, schema))]),
    ):
        pass
    assert precious.read_text() == "do not touch\n" * 10


def test_a_callback_that_raises_is_named(make_engine: MakeEngine) -> None:
    def broken(_delivery: object) -> None:
        raise KeyError("user bug")

    with make_engine(network(), bind=[("o", CallbackSink(broken))]) as engine:
        engine.enqueue("s", ints(1))
        with pytest.raises(au.RunError, match="SINK_FAILED: output o: KeyError"):
            engine.drain()
        assert engine.stats()["outputs"]["o"]["failed"] == "KeyError: 'user bug'"


def test_a_spark_source_that_fails_is_no_end(make_engine: MakeEngine) -> None:
    net = au.Network("socket")
    source = {"format": "socket", "host": "127.0.0.1", "port": 1}
    net.output("o", net.stream("s", "n int", source=source))
    with make_engine(net) as engine, pytest.raises(au.RunError, match="SOURCE_FAILED"):
        _until_idle(engine)


def test_a_spark_source_that_fails_while_one_looks_is_no_end(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = False

    class Query:
        @property
        def isActive(self) -> bool:  # noqa: N802
            nonlocal failed
            failed = True
            return False

        def exception(self) -> Exception | None:
            return ValueError("gone") if failed else None

    net = au.Network("socket")
    net.output("o", net.stream("s", "n int"))
    with make_engine(net) as engine:
        reader: Any = StreamReader.__new__(StreamReader)
        reader._error, reader._stream, reader.query = None, "s", Query()
        monkeypatch.setattr(engine._readers, "_all", [reader])
        with pytest.raises(au.RunError, match="SOURCE_FAILED: stream s: gone"):
            _ = engine.idle
        monkeypatch.setattr(engine._readers, "_all", [])


def _until_idle(engine: au.Engine) -> None:
    while not engine.idle:
        engine.wait(0.1)
