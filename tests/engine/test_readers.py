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
        with pytest.raises(UsageError, match="HAS_SINK: sinks or outputs get the results of sunk"):
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


@pytest.mark.parametrize("others", [(), ("other",)])
@pytest.mark.parametrize("standalone", [False, True])
def test_outputs_that_read_a_query_take_its_results(others: Any, standalone: bool) -> None:
    net = _network("q", *others)
    if standalone:
        net.stream("more", "n bigint", progress=au.Ordered("n"))
        net.queries["q"] = au.Query("SELECT n FROM ticks UNION more")
    net.output("named", "q")
    net.output("second", "q")
    with sparkless.make_engine(net) as engine:
        for n in range(3):
            _put(engine, n)
            assert engine.dequeue("named").to_pylist() == [{"n": n}]
            for take in (engine.dequeue, engine.dequeue_all):
                with pytest.raises(UsageError, match=r"HAS_OUTPUT|HAS_SINK|NOT_SHARED"):
                    take("q")
            if others:
                assert engine.dequeue_all("ticks").to_pylist() == [{"n": n, "queries": ["other"]}]
        assert engine.dequeue("second").to_pylist() == [{"n": n} for n in range(3)]
        assert _kept(engine) == 0
        logs = engine._store.names()[0]
        assert sum(s.rows for log in logs if "#" in log for s in engine._store.segments(log)) == 0


def test_an_output_gets_everything_also_if_its_query_has_a_sink(tmp_path: Path) -> None:
    got: list[int] = []
    net = _network("q", "other")
    net.output("named", "q")
    for start in (0, 3):
        with sparkless.make_engine(net, state=tmp_path) as engine:
            if not start:
                engine.bind_sink("q", _into(got))
            for n in range(start, start + 3):
                _put(engine, n)
                together = engine.dequeue_all("ticks").to_pylist()
                assert together == [{"n": n, "queries": ["other"]}]
                assert engine.dequeue("named").to_pylist() == [{"n": n}]
            assert _kept(engine) == start, "what the sink did not get waits for it"
    with sparkless.make_engine(net, state=tmp_path) as engine:
        engine.bind_sink("q", _into(got))
        engine.drain()
        assert _kept(engine) == 0
    assert got == list(range(6))


def test_an_output_of_a_family_gets_everything_also_if_members_have_sinks() -> None:
    net = _network(family=ROWS[:1])
    net.output("named", "r")
    with sparkless.make_engine(net) as engine:
        engine.bind_sink("r", _into([]))
        engine.bind_sink("r[1]", _into([]))
        for n in range(3):
            _put(engine, n)
            assert engine.dequeue("named").to_pylist() == [{"k": 1, "n": n}]
            assert _kept(engine) == 0


@pytest.mark.parametrize("others", [(), ("other",)])
def test_the_sink_of_a_member_goes_on_after_a_restart(others: Any, tmp_path: Path) -> None:
    got: list[int] = []
    net = _network(*others, family=ROWS[:1])
    with sparkless.make_engine(net, state=tmp_path) as engine:
        engine.bind_sink("r[1]", _into(got))
        _put(engine, 1)
    with sparkless.make_engine(net, state=tmp_path) as engine:
        _put(engine, 2)
        assert engine.dequeue("r").num_rows == 2
        if others:
            assert engine.dequeue_all("ticks").num_rows == 2
        engine.bind_sink("r[1]", _into(got))
        _put(engine, 3)
    assert got == [1, 2, 3]


def test_a_member_may_have_its_sink_before_the_start(tmp_path: Path) -> None:
    got: list[int] = []

    def engine() -> Engine:
        state: Any = {"background": False, "state": tmp_path}
        made = Engine(_network(family=ROWS), executor=sparkless.InProcessExecutor(), **state)
        made.bind_sink("r[2]", _into(got))
        return made

    with engine() as first:
        _put(first, 1)
    with engine() as second:
        _put(second, 2)
        second.modify(remove=["r[2]"])
    with engine() as third:  # as with a query of the network's that was removed
        _put(third, 3)
    assert got == [1, 2]


def test_a_sink_of_no_member_is_refused_with_what_there_is() -> None:
    engine = Engine(_network(family=ROWS), executor=sparkless.InProcessExecutor())
    engine.bind_sink("r[7]", _into([]))
    with pytest.raises(UsageError, match=r"there is no query r\[7\]: the family r has no member 7"):
        engine.start()
    engine = Engine(_network("q"), executor=sparkless.InProcessExecutor())
    engine.bind_sink("qq", _into([]))
    with pytest.raises(UsageError, match=r"there is no output qq; there are q \(did you mean q"):
        engine.start()


@pytest.mark.parametrize("others", [(), ("other",)])
def test_what_the_last_member_took_its_family_does_not_give(others: Any) -> None:
    with sparkless.make_engine(_network(*others, family=ROWS[:1])) as engine:
        _put(engine, 1)
        assert engine.dequeue("r[1]").num_rows == 1
        engine.modify(remove=["r[1]"])
        assert engine.dequeue("r").num_rows == 0


def test_a_new_query_may_have_another_sink_than_the_one_before(tmp_path: Path) -> None:
    """Also if that was not bound again when its query was removed."""
    net, state = _network("q", "other"), tmp_path / "state"
    with sparkless.make_engine(net, state=state) as engine:
        engine.bind_sink("q", au.JsonlSink(tmp_path / "a.jsonl"))
        _put(engine, 1)
    with sparkless.make_engine(net, state=state) as engine:
        engine.modify(remove=["q"])
        engine.modify(add={"q": "SELECT n FROM ticks WHERE n > 0"})
        engine.bind_sink("q", au.JsonlSink(tmp_path / "b.jsonl"))
        _put(engine, 2)
    assert (tmp_path / "b.jsonl").read_text() == '{"n":2}\n'


def test_a_file_keeps_its_fields(tmp_path: Path) -> None:
    """Whatever takes the place of a query that runs as boxes, or of the family of a member."""
    net = _network(family=ROWS)
    net.stream("more", "n bigint", progress=au.Ordered("n"))
    net.query("q", "SELECT n FROM ticks UNION more")
    fields = net.check().arcs["ticks"].schema
    wider = au.Family("SELECT n, n + 1 AS m FROM ticks WHERE n >= :p", ROWS, key="k")
    with sparkless.make_engine(net) as engine:
        engine.bind_sink("q", au.CsvSink(tmp_path / "q.csv", fields))
        engine.bind_sink("r[1]", au.CsvSink(tmp_path / "r.csv", fields))
        for name, query in (("q", "SELECT n, n + 1 AS m FROM ticks UNION more"), ("r", wider)):
            with pytest.raises(UsageError, match=f"SINK_FIELDS.*the new {name} has n, m"):
                engine.modify(remove=[name], add={name: query})


def test_members_do_not_take_what_the_sink_of_their_family_waits_for() -> None:
    got: list[int] = []
    with sparkless.make_engine(_network(family=ROWS)) as engine:

        def sink(delivery: Any) -> None:
            for key, whose in ((1, "the output r[1] is"), (2, "the results of r are")):
                with pytest.raises(UsageError, match=re.escape(f"HAS_SINK: {whose} delivered")):
                    engine.dequeue(f"r[{key}]")
            got.extend(delivery.table["n"].to_pylist())

        engine.bind_sink("r", sink)
        own: list[int] = []
        engine.bind_sink("r[1]", _into(own))
        for n in range(3):
            _put(engine, n)
    assert got == [0, 0, 1, 1, 2, 2]
    assert own == [0, 1, 2]


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


@pytest.mark.parametrize("take", ["dequeue", "dequeue_all"])
def test_a_later_sink_of_a_query_that_an_output_reads_gets_what_the_output_has_not(
    take: str,
) -> None:
    """Whatever is read of others."""
    net = _network("p", "q", family=ROWS)
    net.output("named", "q")
    net.output("all", "r")
    with sparkless.make_engine(net) as engine:
        _put(engine, 1)
        engine.dequeue("named"), engine.dequeue("all")
        _put(engine, 2)
        engine.dequeue("p") if take == "dequeue" else engine.dequeue_all("ticks")
        got: list[int] = []
        of_member: list[int] = []
        engine.bind_sink("q", _into(got))
        engine.bind_sink("r[1]", _into(of_member))
        _put(engine, 3)
        assert (got, of_member) == ([2, 3], [2, 3])
        assert engine.dequeue("named").to_pylist() == [{"n": 2}, {"n": 3}]


@pytest.mark.parametrize("before", [False, True])
def test_a_new_sink_does_not_get_what_was_given_before(before: bool) -> None:
    """Also if a query that had the name before had a sink."""
    net = _network("q", "other", "held")
    net.output("named", "held")
    got: list[int] = []
    with sparkless.make_engine(net) as engine:
        if before:
            engine.bind_sink("q", _into([]))
        _put(engine, 0)
        engine.modify(remove=["q"])
        engine.modify(add={"q": "SELECT n FROM ticks"})
        _put(engine, 1)
        assert engine.dequeue_all("ticks").to_pylist()[-1] == {"n": 1, "queries": ["other", "q"]}
        engine.bind_sink("q", _into(got))
        _put(engine, 2)
    assert got == [2]


def test_results_of_a_query_that_was_replaced_go_with_the_next_step() -> None:
    with sparkless.make_engine(_network("q")) as engine:
        _put(engine, *range(10))
        engine.modify(remove=["q"], add={"q": "SELECT n FROM ticks WHERE n > 1000"})
        assert _kept(engine) == 10
        _put(engine, 10)
        assert engine.dequeue("q").num_rows == 0
        assert _kept(engine) == 0


def test_members_that_went_are_not_remembered_for_one_that_nobody_reads() -> None:
    with sparkless.make_engine(_network(family=ROWS)) as engine:
        for n in range(150):
            engine.modify(add={"r": [{"k": 3, "p": 0}]})
            _put(engine, n)
            assert engine.dequeue("r[3]").num_rows == 1
            assert engine.dequeue("r").num_rows == 3
            engine.modify(remove=["r[3]"])
        assert len(engine._loop.execution.outputs.readers._members["r"][1]) < 100
