"""What connection points keep: by rows, by time, both, and what of it expires."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.engine import Engine
from auroral.ids import HistoryReader, MarksLogId
from tests.conformance.sparkless import make_engine

SCHEMA = "sid int, t bigint, pos int"
ORDERED = au.Ordered("t")


def network(keep: Any, on: str = "across", progress: Any = ORDERED) -> au.Network:
    net = au.Network("border")
    reports = net.stream("reports", SCHEMA, progress=progress)
    across = reports.filter("pos >= 30", name="across")
    net.output("all", across)
    net.connection_point("recent", on, keep=keep)
    return net


def feed(engine: Engine, times: range) -> None:
    rows = [{"sid": t % 3, "t": t, "pos": 30 + t % 5 if t % 4 else 0} for t in times]
    engine.enqueue("reports", rows)
    engine.drain()
    engine.dequeue("all")


def kept(engine: Engine) -> list[int]:
    point = engine._history.points["recent"]
    tables = [engine._store.table(s) for s in point.segments() if s.file]
    return [t for table in tables for t in table["t"].to_pylist()]


def test_history_by_rows_drops_whole_segments_beyond_them() -> None:
    with make_engine(network({"rows": 5})) as engine:
        for start in range(0, 40, 4):
            feed(engine, range(start, start + 4))
        assert kept(engine)[-5:] == [34, 35, 37, 38, 39]
        assert len(kept(engine)) < 5 + 3
        stats = engine.stats()["connection_points"]["recent"]
    assert (stats["arc"], stats["rows"], stats["segments"]) == ("across", 6, 2)
    assert (stats["oldest"], stats["newest"]) == (33, 39)
    assert stats["bytes"] > 0


def test_history_by_time_goes_by_the_mark_of_the_arc() -> None:
    with make_engine(network("10 s")) as engine:
        for start in range(0, 40, 4):
            feed(engine, range(start, start + 4))
        assert kept(engine) == [t for t in range(28, 40) if t % 4]


def test_history_by_time_goes_by_entry_where_there_is_no_mark() -> None:
    now = [0]
    with make_engine(network("10 s", progress=None), now_us=lambda: now[0] * 1_000_000) as engine:
        for start in range(0, 40, 4):
            now[0] = start
            feed(engine, range(start, start + 4))
        assert kept(engine) == [t for t in range(28, 40) if t % 4]


def test_both_bounds_hold() -> None:
    with make_engine(network({"time": "20 s", "rows": 4})) as engine:
        for start in range(0, 40, 4):
            feed(engine, range(start, start + 4))
        assert len(kept(engine)) == 6
    with make_engine(network({"time": "4 s", "rows": 400})) as engine:
        for start in range(0, 40, 4):
            feed(engine, range(start, start + 4))
        assert kept(engine) == [t for t in range(32, 40) if t % 4]


def test_all_is_kept_and_small_segments_become_one() -> None:
    with make_engine(network("all")) as engine:
        for start in range(0, 160, 2):
            feed(engine, range(start, start + 2))
        assert kept(engine) == [t for t in range(160) if t % 4]
        point = engine._history.points["recent"]
        assert len(point.segments()) < 40
        assert len(engine._store.segments(point.marks.log)) < 80
        moves = point.marks.read(0, engine._store.next_moment)
        (series,) = moves.values()
        assert series[1].tolist() == list(range(160)), "tuples that the filter drops count"


def test_marks_are_recorded_as_far_as_history_goes(tmp_path: Path) -> None:
    net = network({"rows": 5})
    for times in (range(20), range(20, 40)):
        with make_engine(net, state=tmp_path) as engine:
            for start in times[::4]:
                feed(engine, range(start, start + 4))
            marks = engine._history.points["recent"].marks
            assert marks.base_moment > 0
            before = marks.before(marks.base_moment, None)
            assert list(before.values()) == [marks.base_moment - 1]
            assert list(marks.before(35, None).values()) == [min(34, times[-1])]


def test_a_point_that_is_no_more_leaves_nothing() -> None:
    net = network("all")
    with make_engine(net) as engine:
        feed(engine, range(8))
        history = engine._history
        history._drop_removed({})
        logs, cursors = engine._store.names()
    assert history.points == {}
    assert str(MarksLogId("recent")) not in logs
    assert not [reader for _, reader in cursors if HistoryReader.parse(reader)]
    assert "across" not in logs, "nobody needs it"


def test_a_point_without_outputs_lets_its_path_run() -> None:
    net = au.Network("border")
    reports = net.stream("reports", SCHEMA)
    reports.filter("pos >= 30", name="across")
    net.connection_point("recent", "across", keep="all")
    with make_engine(net) as engine:
        engine.enqueue("reports", [(1, 1, 40), (2, 2, 10)])
        engine.drain()
        assert kept(engine) == [1]


@pytest.mark.parametrize("on", ["reports", "across.rest"])
def test_streams_and_ports_keep_history(on: str) -> None:
    with make_engine(network({"rows": 3}, on)) as engine:
        for start in range(0, 24, 4):
            feed(engine, range(start, start + 4))
        assert kept(engine)[-3:] == ([21, 22, 23] if on == "reports" else [12, 16, 20])


def test_marks_that_move_often_are_files_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    import auroral.engine.points.point as point_module

    monkeypatch.setattr(point_module, "_MOST_MOVES", 70)
    with make_engine(network("all")) as engine:
        feed(engine, range(1_000))
        for start in range(1_000, 1_200):
            feed(engine, range(start, start + 1))
        point = engine._history.points["recent"]
        segments = engine._store.segments(point.marks.log)
        assert len(segments) < 80
        assert max(s.rows + len(s.punctuations) for s in segments[1:]) <= 70
        ((moments, values),) = point.marks.read(0, 1_200).values()
        assert values.tolist() == list(range(1_200))
        assert moments.tolist() == list(range(1_200))
        assert list(point.marks.before(1_100, None).values()) == [1_099]
