"""Compiled plans: one with room serves, what fits better is compiled aside."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import auroral as au
import auroral.spark.running.runner
from auroral.spark.plans.plan import compile_plan
from auroral.spark.plans.plans import Plans
from auroral.storage.segment import encode, write_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.conftest import MakeEngine

pytestmark = pytest.mark.spark

_SCHEMA = pa.schema([("n", pa.int64())])
_LONG_S = 60


@dataclass(frozen=True)
class _Plan:
    data: DataFrame


class _Compiler:
    """Reads all files of all sources, and remembers what it was asked for."""

    def __init__(self, session: SparkSession):
        self._session = session
        self.made: list[dict[str, int]] = []
        self.threads: list[threading.Thread] = []
        self.fails = False
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def __call__(self, files: Mapping[str, Sequence[str]]) -> _Plan:
        self.made.append({source: len(paths) for source, paths in files.items()})
        self.threads.append(threading.current_thread())
        assert self.may_go_on.wait(_LONG_S)
        if self.fails:
            raise RuntimeError("no plan")
        paths = [path for held in files.values() for path in held]
        return _Plan(self._session.read.schema("n bigint").parquet(*paths))


@pytest.fixture
def compiler(spark: SparkSession) -> _Compiler:
    return _Compiler(spark)


@pytest.fixture
def plans(spark: SparkSession, compiler: _Compiler, tmp_path: Path) -> Plans[_Plan]:
    return Plans(spark, tmp_path / "plans", dict.fromkeys("ab", _SCHEMA), compiler)


def _numbers(plans: Plans[_Plan], train: Mapping[str, Sequence[Path]]) -> list[int]:
    """Run a train, as a runner does."""
    compiled = plans.get({source: len(paths) for source, paths in train.items()})
    assert compiled.slots is not None
    compiled.slots.link(train)
    found: list[int] = compiled.plan.data.toArrow()["n"].to_pylist()
    return sorted(found)


def _file(place: Path, *numbers: int) -> Path:
    path = place / f"{'-'.join(map(str, numbers))}.parquet"
    write_file(path, encode(pa.table({"n": numbers}, _SCHEMA)), sync=False)
    return path


def test_the_first_plan_is_for_all_sources(plans: Plans[_Plan], compiler: _Compiler) -> None:
    plans.get({"a": 3})
    assert compiler.made == [{"a": 4, "b": 4}]


def test_a_plan_serves_fewer_files_and_fewer_sources(
    plans: Plans[_Plan], compiler: _Compiler, tmp_path: Path
) -> None:
    one, two, three = (_file(tmp_path, *numbers) for numbers in [(1,), (2, 22), (3,)])
    assert _numbers(plans, {"a": [one, two], "b": [three]}) == [1, 2, 3, 22]
    assert _numbers(plans, {"b": [two]}) == [2, 22], "nothing of the train before"
    assert _numbers(plans, {"a": [three], "b": [one]}) == [1, 3]
    assert compiler.made == [{"a": 2, "b": 2}]


def test_what_fits_better_is_compiled_aside_when_it_is_wanted_again(
    plans: Plans[_Plan], compiler: _Compiler, tmp_path: Path
) -> None:
    roomy = plans.get({"a": 1, "b": 1})
    assert plans.has_room({"a": 1})
    assert compiler.made == [{"a": 1, "b": 1}], "once may be the only time"
    compiler.may_go_on.clear()
    assert plans.has_room({"a": 1})
    assert plans.get({"a": 1}) is roomy, "a train does not wait"
    compiler.may_go_on.set()
    plans.wait()
    assert compiler.made[1:] == [{"a": 1}]
    assert compiler.threads[1] is not threading.current_thread()
    assert plans.get({"a": 1}) is not roomy
    assert plans.get({"b": 1}) is roomy
    assert _numbers(plans, {"a": [_file(tmp_path, 7)]}) == [7]


def test_without_room_it_is_compiled_aside_as_well(
    plans: Plans[_Plan], compiler: _Compiler
) -> None:
    plans.get({"a": 1})
    assert not plans.has_room({"a": 3})
    assert not plans.has_room({"a": 4}), "as many slots"
    plans.wait()
    assert plans.has_room({"a": 3})
    assert compiler.made == [{"a": 1, "b": 1}, {"a": 4}]


def test_what_cannot_be_compiled_aside_is_not_tried_again(
    plans: Plans[_Plan], compiler: _Compiler
) -> None:
    roomy = plans.get({"a": 1, "b": 1})
    compiler.fails = True
    for _ in range(4):
        assert plans.has_room({"b": 1})
        plans.wait()
    assert compiler.made[1:] == [{"b": 1}]
    assert plans.get({"b": 1}) is roomy


def test_plans_that_are_closed_leave_no_files(
    plans: Plans[_Plan], compiler: _Compiler, tmp_path: Path
) -> None:
    plans.get({"a": 1, "b": 1})
    compiler.may_go_on.clear()
    plans.has_room({"a": 1})
    plans.has_room({"a": 1})
    plans.close()
    compiler.may_go_on.set()
    plans.wait()
    assert len(compiler.made) == 2
    assert list((tmp_path / "plans").iterdir()) == []


def test_no_train_waits_for_a_plan_once_there_is_one(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two streams is quiet, and trains have one file or four."""
    net = au.Network("quiet")
    for stream in "st":
        net.stream(stream, "n bigint, v double")
    net.query("both", "SELECT n FROM s UNION t WHERE v >= 0")
    threads: list[str] = []

    def compile_noting(*given: Any) -> Any:
        threads.append(threading.current_thread().name)
        return compile_plan(*given)

    def rows(first: int, count: int) -> pa.Table:
        return pa.table({"n": range(first, first + count), "v": [1.0] * count})

    with make_engine(net) as engine:
        engine._loop.execution.stepper.warm_up()
        monkeypatch.setattr(auroral.spark.running.runner, "compile_plan", compile_noting)
        found: list[int] = []
        for first in range(0, 6 * 160_000, 160_000):
            for part in range(first, first + 160_000, 40_000):
                engine.enqueue("s", rows(part, 40_000))
            assert len(engine._store.segments("s")) == 4
            engine.drain()
            found += engine.dequeue("both")["n"].to_pylist()
        engine._loop.execution.stepper.wait()
        assert found == list(range(6 * 160_000))
        assert threads, "what fits better was compiled"
        assert threading.current_thread().name not in threads
