"""Many readers of one log of results: what each costs, and what is kept for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import auroral.storage.store
from auroral.engine import Engine
from auroral.engine.results.batches import steps_of
from auroral.storage import HELD, Segment
from auroral.storage.segment import read
from tests.conformance import sparkless
from tests.effort import operations

from .market import batch, ticks

_LOG = "matches@ticks"
_ROUNDS = 3
Made = Callable[[int], AbstractContextManager[tuple[Engine, list[str]]]]


@contextmanager
def _queries(count: int, state: Path | None = None) -> Iterator[tuple[Engine, list[str]]]:
    """An engine with some queries that all take tick 0, each by its name."""
    net = ticks()
    for n in range(count):
        net.query(f"q{n}", f"SELECT n FROM ticks WHERE n < {n + 1}")
    with sparkless.make_engine(net, state=state) as engine:
        yield engine, [f"q{n}" for n in range(count)]


@contextmanager
def _family(count: int) -> Iterator[tuple[Engine, list[str]]]:
    net = ticks()
    rows = [{"rule": n, "p": n + 1} for n in range(count)]
    net.family("rules", "SELECT n FROM ticks WHERE n < :p", rows, key="rule")
    with sparkless.make_engine(net) as engine:
        yield engine, [f"rules[{n}]" for n in range(count)]


def _arrive(engine: Engine) -> None:
    engine.enqueue("ticks", batch(0, 1))
    engine.drain()


def _read(engine: Engine, names: Sequence[str]) -> None:
    for name in names:
        assert engine.dequeue(name)["n"].to_pylist() == [0]


def _kept(engine: Engine) -> int:
    return sum(segment.rows for segment in engine._store.segments(_LOG))


@pytest.mark.parametrize("made", [_queries, _family])
def test_what_a_reader_takes_costs_nothing_for_the_others(made: Made) -> None:
    def effort(count: int) -> float:
        with made(count) as (engine, names):
            for number in range(_ROUNDS):
                _arrive(engine)
                if number < _ROUNDS - 1:
                    _read(engine, names)
            return operations(lambda: _read(engine, names)) / count

    assert effort(240) < 1.3 * effort(30)


def test_results_are_read_from_the_disk_once_for_all_readers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files: list[Path] = []

    def counted(path: Path, segment: Segment, columns: list[str] | None = None) -> pa.Table:
        files.append(path)
        return read(path, segment, columns)

    monkeypatch.setattr(auroral.storage.store, "read", counted)
    with _queries(20) as (engine, names):
        for _ in range(3):
            _arrive(engine)
        for name in names:
            assert engine.dequeue(name).num_rows == 3
        assert len(files) == len(set(files)) == 3
        assert not engine._store._cache._tables


def test_one_who_reads_alone_does_not_look_for_the_others_each_time() -> None:
    def effort(count: int) -> float:
        with _queries(count) as (engine, names):
            _arrive(engine)
            _read(engine, names)
            total = 0
            for _ in range(5):
                _arrive(engine)
                total += operations(lambda: _read(engine, names[:1]))
            return total

    assert effort(240) < 1.3 * effort(30)


def test_forgetting_a_query_looks_at_no_other() -> None:
    def effort(count: int) -> int:
        with _queries(count) as (engine, names):
            _arrive(engine)
            _read(engine, names)
            return operations(lambda: engine._loop.execution.outputs.forget(["q3"]))

    assert effort(240) < 1.3 * effort(30)


def test_statistics_look_at_each_query_once() -> None:
    def effort(count: int) -> float:
        net = ticks()
        for n in range(count):
            net.query(f"q{n}", f"SELECT n FROM ticks WHERE n < {n}")
        rows = [{"rule": n} for n in range(3)]
        net.family("rules", "SELECT n FROM ticks WHERE n < :rule", rows, key="rule")
        with sparkless.make_engine(net) as engine:
            _arrive(engine)
            failed = {n + 1: n + 1 for n in range(count)}  # all of them, each more often
            engine._queries.tally._errors.update(failed)
            engine.modify(remove=["rules[1]"])
            found = engine.stats()["queries"]
            assert [found[f"q{n}"]["errors"] for n in range(count)] == [*range(1, count + 1)]
            rules = found["rules"]
            assert (rules["matches"], rules["members"], rules["errors"]) == (1, 2, 0)
            return operations(engine._queries.catalogue.statistics) / count

    assert effort(240) < 1.3 * effort(30)


def test_results_go_with_the_last_reader_and_not_before(tmp_path: Path) -> None:
    with _queries(200, tmp_path) as (engine, names):
        _arrive(engine)
        _arrive(engine)
        assert _kept(engine) == 2
        for name in names[:-1]:
            assert engine.dequeue(name).num_rows == 2
        assert _kept(engine) == 2
        held = engine._store.head(_LOG, HELD)
    with _queries(200, tmp_path) as (engine, names):
        assert engine._store.head(_LOG, HELD) == held
        assert [engine.dequeue(name).num_rows for name in (names[0], names[-1])] == [0, 2]
        assert _kept(engine) == 0


def test_readers_who_come_and_go_leave_nothing_behind() -> None:
    with _queries(2) as (engine, _):
        for n in range(100):
            text = "SELECT n FROM ticks WHERE n < 1"
            engine.modify(add={"new": text}, remove=["new"] if n else [])
            _arrive(engine)
            _read(engine, ["new"])
        assert _kept(engine) == 100  # q0 and q1 have read nothing
        slowest = engine._loop.execution.outputs.readers._slowest[_LOG]
        assert len(slowest) < 80
        engine.modify(remove=["q0", "q1"])
        _arrive(engine)
        _read(engine, ["new"])
        assert _kept(engine) == 0


def test_what_a_new_sink_has_to_get_stays_although_the_family_has_taken_it() -> None:
    net = ticks()
    rows = [{"rule": n, "p": n + 1} for n in range(3)]
    net.family("rules", "SELECT n FROM ticks WHERE n < :p", rows, key="rule")
    net.query("all", "SELECT n FROM ticks WHERE n < 1")
    delivered: list[int] = []
    with sparkless.make_engine(net) as engine:
        _arrive(engine)
        with engine._loop.between_rounds():  # the sink gets nothing before the others read
            engine.bind_sink("rules[1]", lambda got: delivered.extend(got.table["n"].to_pylist()))
            assert engine.dequeue("rules").num_rows == 3
            _read(engine, ["all"])
        assert _kept(engine) == 1
        engine.drain()
        assert (delivered, _kept(engine)) == ([0], 0)


def test_members_of_a_family_that_went_are_not_remembered() -> None:
    with _family(5) as (engine, names):
        _arrive(engine)
        _read(engine, names)
        assert _kept(engine) == 0
        engine.modify(remove=["rules[1]"])
        readers = {reader for _, reader in engine._store.names()[1]}
        assert "output rules[1]" not in readers
        assert "output rules[2]" in readers
        engine.modify(remove=["rules"])
        assert not [r for _, r in engine._store.names()[1] if r.startswith("output ")]
        assert not [key for key in engine._store.counters if key[1] == "out"]


def test_queries_are_read_in_any_order_over_any_steps() -> None:
    net = ticks()
    for n in range(4):
        net.query(f"q{n}", "SELECT n FROM ticks")
    with sparkless.make_engine(net) as engine:
        seen: dict[int, list[int]] = {n: [] for n in range(4)}
        for step in range(20):
            engine.enqueue("ticks", batch(step, step + 1))
            engine.drain()
            reader = step * step % 4
            seen[reader] += engine.dequeue(f"q{reader}")["n"].to_pylist()
            slowest = min(len(found) for found in seen.values())
            assert _kept(engine) == step + 1 - slowest
        for n, found in seen.items():
            found += engine.dequeue(f"q{n}")["n"].to_pylist()
        assert list(seen.values()) == [list(range(20))] * 4


def _segment(number: int, first: int, length: int) -> Segment:
    return Segment(number, _LOG, None, 0, 0, 0, first, first + length - 1, first + length)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6))))
def test_steps_end_where_nothing_later_begins_before(spans: list[tuple[int, int]]) -> None:
    segments = [_segment(n, *span) for n, span in enumerate(spans)]
    found = list(steps_of(segments))
    assert sorted(s.id for _, run in found for s in run) == list(range(len(segments)))
    ends = [complete_before for complete_before, _ in found]
    assert ends == sorted({*ends})
    possible = [
        end
        for end in sorted({s.complete_before for s in segments})
        if all(s.complete_before <= end or s.first >= end for s in segments)
    ]
    assert ends == possible


def test_steps_that_wait_are_told_apart_in_one_go() -> None:
    def effort(count: int) -> float:
        segments = [_segment(n, n, 1) for n in range(count)]
        return operations(lambda: list(steps_of(segments))) / count

    assert effort(300) < 1.3 * effort(30)
