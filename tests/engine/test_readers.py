"""Who gets which results, and how long they are kept."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import auroral as au
from auroral.engine import Engine
from auroral.errors import RunError, UsageError
from tests.conformance import sparkless

FROM = "SELECT n FROM ticks WHERE n >= :p"
ROWS = [{"k": k, "p": 0} for k in (1, 2)]
Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def _without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    sparkless.no_spark(monkeypatch)


def _network(*queries: str, family: Any = None) -> au.Network:
    net = au.Network("market")
    net.stream("ticks", "n bigint", progress=au.Ordered("n"))
    if family is not None:
        net.family("r", FROM, family, key="k")
    for name in queries:
        net.query(name, "SELECT n FROM ticks")
    return net


def _put(engine: Engine, *numbers: int) -> None:
    engine.enqueue("ticks", [(n,) for n in numbers])
    engine.drain()


def _kept(engine: Engine) -> int:
    return sum(segment.rows for segment in engine._store.segments("matches@ticks"))


def _into(got: list[int]) -> Any:
    return lambda delivery: got.extend(delivery.table["n"].to_pylist())


def test_a_family_that_began_without_rows_keeps_nothing() -> None:
    none = pa.table({"k": pa.array([], pa.int64()), "p": pa.array([], pa.int64())})
    with sparkless.make_engine(_network(family=none)) as engine:
        engine.modify(add={"r": ROWS[:1]})
        for n in range(3):
            _put(engine, n)
            assert engine.dequeue("r[1]").num_rows == 1
        assert _kept(engine) == 0


def test_members_that_went_keep_nothing_if_others_are_read() -> None:
    with sparkless.make_engine(_network(family=ROWS[:1])) as engine:
        _put(engine, 1)
        engine.modify(add={"r": ROWS[1:]}, remove=["r[1]"])
        for n in range(2, 5):
            _put(engine, n)
            assert engine.dequeue("r[2]").num_rows == 1
        assert _kept(engine) == 0


def test_what_a_member_left_its_family_gives_if_it_is_read_as_one() -> None:
    with sparkless.make_engine(_network(family=ROWS)) as engine:
        _put(engine, 1)
        engine.modify(remove=["r[1]", "r[2]"])
        _put(engine, 2)
        assert engine.dequeue("r").to_pylist() == [{"k": 1, "n": 1}, {"k": 2, "n": 1}]


def test_what_a_sink_gets_is_not_taken_together() -> None:
    got: list[int] = []
    found: Rows = []
    with sparkless.make_engine(_network("first", "sunk", "other")) as engine:
        engine.bind_sink("first", lambda _: found.extend(engine.dequeue_all("ticks").to_pylist()))
        engine.bind_sink("sunk", _into(got))
        _put(engine, 1)
        _put(engine, 2)
        with pytest.raises(UsageError, match="HAS_SINK: the results of sunk are delivered"):
            engine.dequeue_all("sunk")
    assert got == [1, 2]
    assert found == [{"n": 1, "queries": ["other"]}, {"n": 2, "queries": ["other"]}]


def test_what_a_sink_did_not_get_is_taken_together_if_it_is_not_bound_again(
    tmp_path: Path,
) -> None:
    got: list[int] = []
    net = _network("sunk", "other")

    def together(engine: Engine, number: int) -> Rows:
        _put(engine, number)
        found: Rows = engine.dequeue_all("ticks").to_pylist()
        return found

    def failing(_delivery: Any) -> None:
        engine.dequeue_all("ticks")
        raise ValueError

    with suppress(RunError), sparkless.make_engine(net, state=tmp_path) as engine:
        engine.bind_sink("sunk", _into(got))
        assert together(engine, 1) == [{"n": 1, "queries": ["other"]}]
        engine.modify(add={"last": "SELECT n FROM ticks"})
        engine.bind_sink("last", failing)
        _put(engine, 2)
    assert got == [1, 2]
    with sparkless.make_engine(net, state=tmp_path) as engine:
        assert together(engine, 3) == [
            {"n": 2, "queries": ["last"]},
            {"n": 3, "queries": ["sunk", "other", "last"]},
        ]
        engine.bind_sink("sunk", _into(got))
        assert together(engine, 4) == [{"n": 4, "queries": ["other", "last"]}]
    assert got == [1, 2, 4]


@pytest.mark.parametrize("limit", ["x", -1, 1.5])
def test_a_limit_is_a_number_of_rows(limit: Any) -> None:
    with sparkless.make_engine(_network("q")) as engine:
        _put(engine, 1)
        for take in (engine.dequeue, engine.dequeue_all):
            with pytest.raises(UsageError, match="BAD_CALL: limit is a number of rows"):
                take("q", limit=limit)
        assert engine.dequeue("q", limit=1).num_rows == 1


def test_the_sink_of_a_member_does_not_bring_back_what_its_family_gave() -> None:
    got: list[int] = []
    with sparkless.make_engine(_network("other", family=ROWS)) as engine:
        engine.bind_sink("r[1]", _into(got))
        _put(engine, 1)
        assert engine.dequeue("r").num_rows == 2
        engine.modify(remove=["r[1]"], add={"r": [{"k": 1, "p": 5}]})
        assert engine.dequeue_all("ticks").to_pylist() == [{"n": 1, "queries": ["other"]}]
    assert got == [1]


def test_what_a_family_gave_its_members_do_not_give_again() -> None:
    """Whether or not it is kept for others."""
    for others in ((), ("other",)):
        with sparkless.make_engine(_network(*others, family=ROWS)) as engine:
            _put(engine, 1)
            assert engine.dequeue("r[1]").num_rows == 1
            assert engine.dequeue("r").num_rows == 2
            _put(engine, 2)
            assert engine.dequeue("r[2]").to_pylist() == [{"n": 2}], others


def test_what_all_members_gave_their_family_does_not_give_again() -> None:
    for others in ((), ("other",)):
        with sparkless.make_engine(_network(*others, family=ROWS)) as engine:
            _put(engine, 1)
            assert [engine.dequeue(f"r[{k}]").num_rows for k in (1, 2)] == [1, 1]
            _put(engine, 2)
            assert engine.dequeue("r[1]").num_rows == 1
            assert engine.dequeue("r").to_pylist() == [{"k": k, "n": 2} for k in (1, 2)], others


def test_what_a_query_gives_its_output_it_does_not_give_itself() -> None:
    for others in ((), ("other",)):
        net = _network("q", *others)
        net.output("named", "q")
        with sparkless.make_engine(net) as engine:
            _put(engine, 1)
            assert engine.dequeue("named").num_rows == 1
            _put(engine, 2)
            assert engine.dequeue("q").to_pylist() == [{"n": 2}], others
            assert engine.dequeue("named").to_pylist() == [{"n": 2}], others


def test_members_do_not_take_what_the_sink_of_their_family_waits_for() -> None:
    got: list[int] = []
    with sparkless.make_engine(_network(family=ROWS)) as engine:

        def sink(delivery: Any) -> None:
            for key, problem in ((1, "the output r[1] is"), (2, "what r[2] would give is")):
                with pytest.raises(UsageError, match=re.escape(f"HAS_SINK: {problem} delivered")):
                    engine.dequeue(f"r[{key}]")
            got.extend(delivery.table["n"].to_pylist())

        engine.bind_sink("r", sink)
        own: list[int] = []
        engine.bind_sink("r[1]", _into(own))
        for n in range(3):
            _put(engine, n)
    assert got == [0, 0, 1, 1, 2, 2]
    assert own == [0, 1, 2]


def test_a_query_whose_output_has_a_sink_is_not_dequeued(tmp_path: Path) -> None:
    net = _network("q")
    net.output("named", "q", sink={"format": "jsonl", "path": str(tmp_path / "named.jsonl")})
    net.output("plain", "q")
    with sparkless.make_engine(net) as engine:
        _put(engine, 1)
        with pytest.raises(UsageError, match="HAS_SINK: what q would give is delivered to a sink"):
            engine.dequeue("q")
        assert engine.dequeue("plain").to_pylist() == [{"n": 1}]


def test_a_family_gives_what_members_left_although_others_came_later() -> None:
    """Those that nobody has read have taken nothing."""
    with sparkless.make_engine(_network("other", family=ROWS[:1])) as engine:
        _put(engine, 1)
        engine.modify(add={"r": [{"k": k, "p": 0} for k in (2, 3)]}, remove=["r[1]"])
        _put(engine, 2)
        assert engine.dequeue("r[2]").num_rows == 1
        assert engine.dequeue("other").num_rows == 2
        found = [(row["k"], row["n"]) for row in engine.dequeue("r").to_pylist()]
        assert found == [(1, 1), (2, 2), (3, 2)]
