"""Functions and sinks that call sys.exit(), or raise what else is no Exception."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import auroral as au
from auroral.io.sources.iterable import IterableSource
from auroral.kernels.accumulators.spec import CallSpec
from auroral.kernels.accumulators.window_function import WindowFunction
from auroral.network.types import Type
from auroral.spark.plans.functions import applied
from auroral.testing import run
from tests.conformance import sparkless

from .market import above, batch, numbers, ticks

if TYPE_CHECKING:
    from tests.conftest import MakeEngine

RAISED = [SystemExit, KeyboardInterrupt, GeneratorExit]


def leaving(raised: type[BaseException]) -> Callable[..., Any]:
    """A function that gives what it got, and leaves at the number seven."""

    @au.function("bigint")
    def same(n: pa.Array) -> pa.Array:
        if 7 in n.to_pylist():
            raise raised("seven")
        return n

    return same


@pytest.mark.parametrize("raised", RAISED)
def test_a_predicate_that_exits_fails_its_query_on_that_tuple(
    raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    net = ticks()
    net.function("same", leaving(raised), returns="bigint")
    net.query("exits", "SELECT n FROM ticks WHERE same(n) >= 0")
    net.query("dear", "SELECT n FROM ticks WHERE price > 10")
    with sparkless.make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 20))
        engine.drain()
        assert numbers(engine.dequeue("exits")) == [n for n in range(20) if n != 7]
        assert numbers(engine.dequeue("dear")) == above(10, (0, 20))
        assert engine.matches("exits")["errors"].to_pylist() == [1]


@pytest.mark.parametrize("raised", RAISED)
def test_what_a_box_calls_exits_for_one_tuple(raised: type[BaseException]) -> None:
    belongs, values = pa.array([True] * 3), pa.array([6, 7, 8])
    found = applied(leaving(raised), Type("bigint"), belongs, (values,)).to_pylist()
    assert [row["value"] for row in found] == [6, None, 8]
    assert found[1]["error"] == f"{raised.__name__}: seven"


def label(values: pa.Array) -> Any:
    return ["x"] * len(values)


def test_a_box_says_which_function_gives_another_type() -> None:
    said = "TypeError: label should return bigint, and returned string (Failed to parse"
    found = applied(label, Type("bigint"), pa.array([True]), (pa.array([6]),)).to_pylist()
    assert found[0]["value"] is None
    assert found[0]["error"].startswith(said)
    net = au.Network("n")
    arc = net.stream("s", "a bigint")
    how = {"udf": label, "args": ["a"], "returns": "bigint"}
    net.output("o", net.box("map", input=arc, compute={"b": how}))
    dead = run(net, {"s": [{"a": 6}]}).dead_letters
    assert [letter.reason.startswith(said) for letter in dead] == [True]


class Last:
    """The last value of a window, if that is not seven."""

    def init(self) -> None:
        return None

    def incr(self, _state: Any, value: int) -> int:
        return value

    def final(self, state: Any) -> Any:
        if state == 7:
            raise SystemExit("seven")
        return state


def test_a_window_function_that_exits_fails_its_window() -> None:
    function = WindowFunction(CallSpec("udf", (pa.int64(),), pa.int64(), function=Last))
    windows = [pa.array([[{"a0": 6}], [{"a0": 7}]], function.types[0])]
    values, failures = function.attempt(windows)
    assert values.to_pylist() == [6, None]
    assert failures == {1: "SystemExit: seven"}


def test_the_test_interpreter_knows_such_functions() -> None:
    net = au.Network("exits")
    net.output("o", net.stream("s", "n bigint").map(name="m", b=leaving(SystemExit)))
    found = run(net, {"s": [{"n": a} for a in (6, 7, 8)]})
    assert [row["b"] for row in found["o"]] == [6, 8]


@pytest.mark.spark
def test_no_worker_ends(make_engine: MakeEngine) -> None:
    net = au.Network("exits")
    stream = net.stream("s", "n bigint")
    net.output("o", stream.map(keep="*", name="m", b=leaving(SystemExit)))
    net.function("same", leaving(SystemExit), returns="bigint")
    net.query("q", "SELECT n FROM s WHERE same(n) >= 0")
    with make_engine(net) as engine:
        engine.enqueue("s", [{"n": a} for a in (6, 7, 8)])
        engine.drain()
        assert engine.dequeue("o")["b"].to_pylist() == [6, 8]
        assert engine.dequeue("q")["n"].to_pylist() == [6, 8]
        assert engine.stats()["boxes"]["m"]["dead"] == 1


def ending(how: Callable[[], object]) -> Callable[..., Any]:
    """A function that gives what it got; at the number seven its process ends."""

    @au.function("bigint")
    def same(n: pa.Array) -> pa.Array:
        if 7 in n.to_pylist():
            how()
        return n

    return same


@pytest.mark.spark
@pytest.mark.parametrize(
    ("how", "told"),
    [
        (lambda: os._exit(0), "exit code 0"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "SIGSEGV"),
        (lambda: os.kill(os.getpid(), 40), "signal 40"),
    ],
)
@pytest.mark.parametrize("driver_bytes", [0, 1 << 30])
def test_a_tuple_that_ends_its_worker_fails_alone(
    make_engine: MakeEngine, how: Callable[[], object], told: str, driver_bytes: int
) -> None:
    class Window:
        returns = "bigint"

        def init(self) -> list[int]:
            return []

        def incr(self, state: list[int], n: int) -> None:
            state.append(n)

        def final(self, state: list[int]) -> int:
            if 7 in state:
                how()
            return sum(state)

    class Total:
        returns = "total bigint"

        def init(self) -> int:
            return 0

        def step(self, total: int, row: dict[str, int]) -> tuple[int, dict[str, int]]:
            if row["n"] == 7:
                how()
            return total + row["n"], {"total": total + row["n"]}

    net = ticks()
    arc = net.stream("s", "n bigint")
    net.output("t", arc.stateful_map(Total, name="t"))
    net.output("o", arc.map(keep=["n"], name="m", b=ending(how)))
    order, window = au.Order("tup#"), au.Window(size=2)
    net.output("w", arc.aggregate(order, window, name="w", total=Window))
    net.function("same", ending(how), returns="bigint")
    net.query("exits", "SELECT n FROM ticks WHERE same(n) >= 0")
    net.query("shown", "SELECT n, same(n) AS again FROM ticks WHERE n < 20")
    net.query("dear", "SELECT n FROM ticks WHERE price > 10")
    why = f"the function ended its process ({told})"
    with make_engine(net, driver_bytes=driver_bytes) as engine:
        for start in (0, 20):
            engine.enqueue("ticks", batch(start, start + 20))
            engine.enqueue("s", [{"n": start + n} for n in range(20)])
            engine.drain()
        assert numbers(engine.dequeue("exits")) == [n for n in range(40) if n != 7]
        assert engine.dequeue("shown")["again"].to_pylist() == [
            n if n != 7 else None for n in range(20)
        ]
        assert numbers(engine.dequeue("dear")) == above(10, (0, 40))
        assert engine.dequeue("o")["b"].to_pylist() == [n for n in range(40) if n != 7]
        sums = [2 * n + 1 for n in range(0, 40, 2) if n != 6]
        assert engine.dequeue("w")["total"].to_pylist() == sums
        stats = engine.stats()
        assert stats["queries"]["exits"]["errors"] == 1
        assert stats["queries"]["exits"]["error"] == why
        totals = [sum(m for m in range(n + 1) if m != 7) for n in range(40) if n != 7]
        assert engine.dequeue("t")["total"].to_pylist() == totals
        assert {stats["boxes"][name]["dead"] for name in "mwt"} == {1}
        assert engine.dead_letters.read_text().count(why) == 3


@pytest.mark.spark
def test_a_worker_that_ends_for_every_tuple_ends_no_step(make_engine: MakeEngine) -> None:
    net = ticks()
    net.function("odd", lambda _n: os._exit(7), returns="boolean")
    net.query("odd_ones", "SELECT n FROM ticks WHERE odd(n)")
    net.query("all", "SELECT n FROM ticks")
    with make_engine(net) as engine:
        engine.enqueue("ticks", batch(0, 40))
        engine.drain()
        assert numbers(engine.dequeue("all")) == list(range(40))
        assert engine.matches("odd_ones").to_pylist() == [
            {"query": "odd_ones", "matches": 0, "errors": 40}
        ]


@pytest.mark.parametrize(
    ("raised", "background"), [*((raised, True) for raised in RAISED), (SystemExit, False)]
)
def test_a_sink_that_exits_has_failed(
    raised: type[BaseException], background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = ticks()
    net.query("all", "SELECT n FROM ticks")

    def leave(_delivery: Any) -> None:
        raise raised("enough")

    with sparkless.make_engine(net, background=background) as engine:
        engine.bind_sink("all", leave)
        engine.enqueue("ticks", batch(0, 3))
        with pytest.raises(au.RunError, match=f"SINK_FAILED: output all: {raised.__name__}"):
            engine.drain(timeout_s=60)


def test_who_waits_can_interrupt_a_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    net = ticks()
    net.query("all", "SELECT n FROM ticks")

    def wait(_delivery: Any) -> None:
        raise KeyboardInterrupt

    with sparkless.make_engine(net) as engine:
        engine.bind_sink("all", wait)
        engine.enqueue("ticks", batch(0, 3))
        with pytest.raises(KeyboardInterrupt):
            engine.drain()


def test_a_source_that_exits_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    net = ticks()

    def rows() -> Any:
        yield from batch(0, 3)
        raise SystemExit("enough")

    session: Any = sparkless.InProcessExecutor()
    engine = au.Engine(net, executor=session)
    engine.bind_source(IterableSource("ticks", rows(), net.streams["ticks"].schema_))
    with pytest.raises(au.RunError, match="SystemExit: enough"), engine:
        engine.drain(timeout_s=60)
