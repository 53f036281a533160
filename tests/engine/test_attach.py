"""Queries that are attached to connection points: history first, then what flows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import auroral as au
from auroral.engine import Engine
from auroral.engine.points import attachments
from auroral.errors import AuroralError, NetworkError, UsageError
from auroral.ids import AttachmentId
from tests.conformance.sparkless import make_engine

ORDERED = au.Ordered("t")


def network(keep: Any = "all", progress: Any = ORDERED) -> au.Network:
    net = au.Network("border")
    reports = net.stream("reports", "sid int, t bigint, pos int", progress=progress)
    across = reports.filter("pos >= 30", name="across")
    net.output("all", across)
    net.connection_point("recent", across, keep=keep)
    return net


def feed(engine: Engine, times: range, *, drain: bool = True) -> None:
    rows = [{"sid": t % 3, "t": t, "pos": 30 + t % 5 if t % 4 else 0} for t in times]
    engine.enqueue("reports", rows)
    if drain:
        engine.drain()


def rows(engine: Engine, name: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in engine.dequeue(name).to_pylist()]


def test_history_comes_first_and_then_what_flows() -> None:
    with make_engine(network()) as engine:
        feed(engine, range(10))
        name = engine.attach("recent", "SELECT t FROM recent WHERE sid = 1", name="hot")
        assert name == "hot"
        engine.drain()
        assert rows(engine, "hot") == [(1,), (7,)]
        feed(engine, range(10, 20))
        assert rows(engine, "hot") == [(10,), (13,), (19,)]
        assert rows(engine, "hot") == []


def test_boxes_are_attached_as_a_function() -> None:
    with make_engine(network()) as engine:
        feed(engine, range(10))
        engine.attach("recent", lambda arc: arc.filter("sid = 1").map(keep=["t"]), name="hot")
        engine.attach("recent", lambda arc: arc, name="same")
        engine.attach("recent", lambda arc: arc.filter("sid = 1").rest, name="rest")
        engine.drain()
        assert rows(engine, "hot") == [(1,), (7,)]
        assert [t for _, t, _ in rows(engine, "same")] == [1, 2, 3, 5, 6, 7, 9]
        assert [t for _, t, _ in rows(engine, "rest")] == [2, 3, 5, 6, 9]


def test_only_what_is_kept_is_seen() -> None:
    with make_engine(network({"rows": 4})) as engine:
        feed(engine, range(20))
        engine.attach("recent", "SELECT t FROM recent", name="hot")
        feed(engine, range(20, 24))
        assert rows(engine, "hot") == [(t,) for t in (15, 17, 18, 19, 21, 22, 23)]
    with make_engine(network("5 s")) as engine:
        feed(engine, range(20))
        engine.attach("recent", "SELECT t FROM recent", name="hot")
        engine.drain()
        assert rows(engine, "hot") == [(t,) for t in (14, 15, 17, 18, 19)]


def test_what_waits_before_the_arc_counts_as_kept() -> None:
    with make_engine(network({"rows": 2})) as engine:
        feed(engine, range(6))
        feed(engine, range(6, 10), drain=False)
        engine.attach("recent", "SELECT t FROM recent", name="hot")
        feed(engine, range(10, 12))
        assert rows(engine, "hot") == [(7,), (9,), (10,), (11,)]


def test_since_is_a_value_of_the_progressing_field() -> None:
    with make_engine(network({"rows": 6})) as engine:
        feed(engine, range(20))
        engine.attach("recent", "SELECT t FROM recent", name="hot", since=16)
        engine.drain()
        assert rows(engine, "hot") == [(17,), (18,), (19,)]
        with pytest.raises(UsageError, match=r"keeps t from 13 on, not from 3") as raised:
            engine.attach("recent", "SELECT t FROM recent", since=3)
        assert raised.value.code == "HISTORY_TOO_SHORT"
        engine.attach("recent", "SELECT t FROM recent", name="late", since=100)
        feed(engine, range(20, 22))
        assert rows(engine, "late") == [(21,)], "it begins now"


def test_windows_go_by_the_marks_of_the_history() -> None:
    sql = "SELECT sid, count(*) AS n FROM recent [RANGE 5, WA t] GROUP BY sid"
    net = network()
    net.query("all_along", sql)
    with make_engine(net) as engine:
        feed(engine, range(23))
        engine.attach("recent", sql, name="hot")
        feed(engine, range(23, 41))
        engine.finish()
        expected = rows(engine, "all_along")
        assert len(expected) > 20
        assert rows(engine, "hot") == expected


def test_rows_of_a_stream_are_counted_from_the_beginning_of_what_is_kept() -> None:
    net = au.Network("border")
    net.stream("reports", "sid int, t bigint, pos int")
    net.connection_point("recent", "reports", keep={"rows": 7})
    sql = "SELECT count(*) AS n, max(t) AS t FROM recent [ROWS 3, SLIDE 3]"
    with make_engine(net) as engine:
        feed(engine, range(10))
        engine.attach("recent", sql, name="hot")
        feed(engine, range(10, 13))
        assert rows(engine, "hot") == [(3, 5), (3, 8), (3, 11)]


def test_detach_leaves_nothing() -> None:
    with make_engine(network()) as engine:
        feed(engine, range(10))
        before = engine._store.names(), dict(engine._store.counters)
        progress = set(engine._store.manifest.progress())
        for name in ("hot", "other"):
            engine.attach(
                "recent", "SELECT sid, count(*) AS n FROM recent [RANGE 5, WA t] GROUP BY sid",
                name=name,
            )  # fmt: skip
        engine.drain()
        assert engine.stats()["connection_points"]["recent"]["attachments"] == ["hot", "other"]
        engine.detach("hot")
        assert any(
            AttachmentId.of(log) == AttachmentId("other") for log, _ in engine._store.names()[1]
        )
        engine.detach("other")
        assert engine._store.names() == before[0]
        assert set(engine._store.manifest.progress()) == progress
        assert engine._store.counters.keys() == before[1].keys()
        assert engine._history.points["recent"].holds == {}
        assert list((engine._store.directory / "slots").iterdir()) == [
            engine._loop.execution.plan.place
        ] or not list((engine._store.directory / "slots").iterdir())
        with pytest.raises(UsageError, match="there is no output hot"):
            engine.dequeue("hot")
        engine.attach("recent", "SELECT t FROM recent", name="hot")
        engine.drain()
        assert len(rows(engine, "hot")) == 7, "the name is free again"


def test_an_attached_query_survives_a_restart(tmp_path: Path) -> None:
    sql = "SELECT sid, count(*) AS n FROM recent [RANGE 5, WA t] GROUP BY sid"
    net = network({"rows": 12})
    net.query("all_along", sql)
    found = []
    with make_engine(net, state=tmp_path) as engine:
        feed(engine, range(8))
        engine.attach("recent", sql, name="hot")
        engine.attach("recent", lambda arc: arc.filter("sid = 2").map(keep=["t"]), name="boxes")
        feed(engine, range(8, 12))
        found += rows(engine, "hot")
    with make_engine(net, state=tmp_path) as engine:
        feed(engine, range(12, 60))
        engine.finish()
        found += rows(engine, "hot")
        assert found == rows(engine, "all_along")
        assert rows(engine, "boxes") == [(t,) for t in range(60) if t % 4 and t % 3 == 2]
        engine.detach("hot")
        engine.detach("boxes")
    with make_engine(net, state=tmp_path) as engine:
        assert engine.stats()["attachments"] == {}


def test_history_stays_as_long_as_an_attached_query_needs_it() -> None:
    with make_engine(network({"rows": 3}), train=2) as engine:
        feed(engine, range(12))
        engine.attach("recent", "SELECT t FROM recent", name="hot")
        feed(engine, range(12, 60))
        assert rows(engine, "hot") == [(t,) for t in range(9, 60) if t % 4]


def test_a_sink_gets_the_results() -> None:
    got: list[int] = []
    with make_engine(network()) as engine:
        feed(engine, range(6))
        engine.attach("recent", "SELECT t FROM recent", name="hot")
        engine.bind_sink("hot", lambda delivery: got.extend(delivery.table["t"].to_pylist()))
        feed(engine, range(6, 10))
        assert got == [1, 2, 3, 5, 6, 7, 9]
        engine.detach("hot")
        feed(engine, range(10, 14))
    assert got == [1, 2, 3, 5, 6, 7, 9]


@pytest.mark.parametrize(
    ("point", "query", "options", "code", "said"),
    [
        ("nowhere", "SELECT t FROM nowhere", {}, "UNKNOWN_POINT", "there are recent"),
        ("recent", "SELECT t FROM reports", {}, "UNKNOWN_STREAM", "there are recent"),
        ("recent", "SELECT x FROM recent", {}, "UNKNOWN_FIELD", "x"),
        ("recent", "SELECT t FROM recent; DROP TABLE x", {}, "BAD_STATEMENT", "one statement"),
        ("recent", 5, {}, "BAD_CALL", "SQL or a function"),
        ("recent", lambda _arc: 5, {}, "BAD_CALL", "must return an arc"),
        ("recent", lambda a: a.network.stream("s", "a int"), {}, "BAD_CALL", "boxes only"),
        ("recent", "SELECT t FROM recent", {"name": "all"}, "DUPLICATE_NAME", "all"),
        ("recent", "SELECT t FROM recent", {"name": "a b"}, "BAD_NAME", "a b"),
        ("recent", "SELECT t FROM recent", {"since": "soon"}, "BAD_CALL", "soon"),
        (
            "recent",
            lambda arc: arc.aggregate(
                au.Order("t"), au.Window(size=5, timeout=1), n="count(*)"
            ),
            {},
            "NO_CLOCK",
            "timeout",
        ),
    ],
)  # fmt: skip
def test_mistakes(point: str, query: Any, options: dict[str, Any], code: str, said: str) -> None:
    with make_engine(network()) as engine:
        feed(engine, range(4))
        with pytest.raises(AuroralError, match=said) as raised:
            engine.attach(point, query, **options)
        assert raised.value.code == code
        assert engine.stats()["attachments"] == {}
        assert not [c for _, c in engine._store.names()[1] if AttachmentId.of(c)]
        assert engine._history.points["recent"].holds == {}


def test_names_are_shared_with_queries() -> None:
    with make_engine(network()) as engine:
        engine.attach("recent", "SELECT t FROM recent", name="hot")
        with pytest.raises(UsageError, match="taken by an attached query"):
            engine.modify(add={"hot": "SELECT t FROM reports"})
        engine.modify(add={"cold": "SELECT t FROM reports"})
        with pytest.raises(UsageError, match="the name cold is taken"):
            engine.attach("recent", "SELECT t FROM recent", name="cold")
        assert engine.attach("recent", "SELECT t FROM recent") == "attached_1"
        with pytest.raises(UsageError, match="no query warm is attached"):
            engine.detach("warm")


def test_a_query_that_fails_stops_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with make_engine(network()) as engine:
        feed(engine, range(6))
        engine.attach("recent", "SELECT t FROM recent", name="hot")
        engine.attach("recent", "SELECT t FROM recent", name="well")
        stepper = engine._attachments._held["hot"].stepper

        def broken(*_: Any) -> bool:
            raise au.RunError("SPARK_FAILED", "it broke")

        monkeypatch.setattr(stepper, "step", broken)
        with pytest.raises(au.RunError, match="attached query hot: it broke"):
            engine.drain()
        feed(engine, range(6, 8))
        assert len(rows(engine, "well")) == 6
        with pytest.raises(au.RunError, match="it broke"):
            engine.dequeue("hot")
        assert engine.stats()["attachments"]["hot"]["failed"] == "it broke"
        monkeypatch.undo()
        engine.detach("hot")


def test_unimportable_functions_cannot_be_kept(tmp_path: Path) -> None:
    with make_engine(network(), state=tmp_path) as engine, pytest.raises(NetworkError):
        engine.attach("recent", lambda arc: arc.map(x={"udf": lambda row: 1, "returns": "int"}))


def test_the_end_of_the_input_closes_windows() -> None:
    sql = "SELECT count(*) AS n FROM recent [RANGE 100, WA t]"
    with make_engine(network()) as engine:
        feed(engine, range(10))
        engine.finish()
        engine.attach("recent", sql, name="hot")
        engine.drain()
        assert rows(engine, "hot") == [(7,)]


def test_threads_deliver_the_same() -> None:
    sql = "SELECT sid, count(*) AS n FROM recent [RANGE 5, WA t] GROUP BY sid"
    net = network()
    net.query("all_along", sql)
    with make_engine(net, background=True) as engine:
        for start in range(0, 200, 10):
            feed(engine, range(start, start + 10), drain=start == 90)
            if start == 100:
                engine.attach("recent", sql, name="hot")
                engine.attach("recent", sql, name="again", since=50)
        engine.finish()
        assert rows(engine, "hot") == rows(engine, "all_along")
        assert rows(engine, "again")
        engine.detach("hot")
        engine.detach("again")
        assert engine.stats()["attachments"] == {}


def test_boxes_that_use_tables_are_refused_in_attached_queries() -> None:
    net = au.Network("n")
    ticks = net.stream("ticks", "k int, n int")
    net.table("kept", "k int, total bigint", key=["k"])
    net.connection_point("recent", ticks, keep="all")

    def latched(arc: Any) -> Any:
        return arc.latch(by=["k"], table="kept", total="sum(n)")

    with make_engine(net) as engine:
        with pytest.raises(au.UsageError, match=r"BOX_NOT_EXECUTABLE.*latch in an attached query"):
            engine.attach("recent", latched, name="totals")
        assert engine.stats()["attachments"] == {}


def test_a_halted_box_before_the_point_does_not_hold_up_the_others() -> None:
    with make_engine(network()) as engine:
        feed(engine, range(6))
        engine.attach("recent", "SELECT t FROM recent", name="hot")
        engine.drain()
        stepper = engine._loop.execution.stepper
        (superbox,) = [s.name for s in engine._loop.execution.superboxes]
        stepper.halted[superbox] = au.RunError("STEP_TIMEOUT", "it takes too long")
        engine.enqueue("reports", [(1, 7, 40)])
        with pytest.raises(au.RunError, match="it takes too long"):
            engine.drain()
        assert len(rows(engine, "hot")) == 4
        del stepper.halted[superbox]
        engine.drain()
        assert rows(engine, "hot") == [(7,)]


def test_there_are_pauses_between_historical_steps_while_the_network_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now_s[0])
    with make_engine(network(), train=4) as engine:
        feed(engine, range(40))
        engine.attach("recent", lambda arc: arc, name="hot")
        attached, execution = engine._attachments, engine._loop.execution
        monkeypatch.setattr(attachments, "time", clock)
        monkeypatch.setattr(attached, "_workers", 1)  # as if there were threads
        moment = engine._ingest.next_moment

        def steps() -> int:
            for _ in range(3):
                attached.step(execution, moment, live=True)
            return int(engine.stats()["attachments"]["hot"]["steps"])

        assert steps() == 1, "the network works: one step, and a pause"
        assert attached.rest_s is not None
        now_s[0] += attached.rest_s
        assert steps() == 2
        now_s[0] += 60
        attached.step(execution, moment, live=False)
        attached.step(execution, moment, live=False)
        assert engine.stats()["attachments"]["hot"]["steps"] > 3, "it is quiet: no pause"
        engine.drain()
        assert len(rows(engine, "hot")) == 30
