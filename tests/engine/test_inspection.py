"""Looking at tuples: taps, followers, kept rows, replays, previews of changes."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import auroral as au
from auroral.engine.inspect import followers, taps
from tests.conformance.sparkless import make_engine
from tests.engine.test_debug import ROWS, code, network, rows


def kept_network() -> au.Network:
    net = network()
    net.connection_point("recent", "across", keep="all", key="sid")
    net.view("counts", "crowd", keep="all")
    return net


def plain(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.drop_columns(["_seq", "_at"]).to_pylist()]


# ── samples ──


@pytest.mark.parametrize("background", [False, True])
def test_a_tap_shows_the_latest_tuples_of_any_arc(background: bool) -> None:
    with make_engine(kept_network(), background=background) as engine:
        engine.modify(add={"far": "SELECT sid FROM reports WHERE pos > 50"})
        arcs = ["reports", "across", "across.rest", "crowd", "enough", "doubled", "all", "recent"]
        for arc in [*arcs, "far", "counts"]:
            assert engine.sample(arc).column_names[:2] == ["_seq", "_at"], "opens a tap"
        engine.enqueue("reports", ROWS)
        engine.drain()
        rows(engine, "all"), rows(engine, "alerts"), rows(engine, "far")
        across = [(1, 1, 35), (2, 1, 40), (4, 5, 60)]
        doubled = [(1, 70), (2, 80), (4, 120)]
        expected = {
            "reports": ROWS,
            "across": across,
            "across.rest": [(3, 2, 20)],
            "crowd": [(0, 2)],
            "enough": [(0, 2)],
            "doubled": doubled,
            "all": doubled,
            "recent": across,
            "far": [(4,)],
            "counts": [(0, 2)],
        }
        assert {arc: plain(engine.sample(arc)) for arc in expected} == expected
        last = engine.sample("across", limit=1)
        assert last["_seq"].to_pylist() == [3]
        assert str(last["_at"].type) == "timestamp[us, tz=UTC]"
        assert plain(engine.sample("reports", where="pos < 40 and sid <> 1")) == [(3, 2, 20)]
        assert plain(engine.sample("doubled", where="double > 100")) == [(4, 120)]


def test_a_sample_of_a_paused_stream_shows_what_waits() -> None:
    with make_engine(network()) as engine:
        engine.pause()
        engine.enqueue("reports", ROWS)
        engine.wait(0)
        assert plain(engine.sample("reports", limit=2)) == ROWS[2:]
        assert plain(engine.sample("across")) == [], "it has not come so far"


def test_a_tap_closes_when_nobody_looks() -> None:
    with make_engine(network()) as engine:
        now = [0.0]
        engine._parts.watch.taps._now_s = lambda: now[0]
        engine.sample("across")
        assert engine._parts.watch.active
        now[0] = taps.OPEN_S - 1
        engine.enqueue("reports", ROWS)
        engine.drain()
        assert engine._parts.watch.taps
        now[0] = taps.OPEN_S + 1
        engine.enqueue("reports", [(1, 9, 50)])
        engine.drain()
        assert not engine._parts.watch.taps
        assert not engine._parts.watch.active


def test_wrong_samples_are_refused() -> None:
    with make_engine(network()) as engine:
        assert code(engine.sample, "acros") == "UNKNOWN_ENTITY"
        assert code(engine.sample, "across", limit=-1) == "BAD_CALL"
        assert code(engine.sample, "across", where="speed > 1") == "UNKNOWN_FIELD"
        assert code(engine.sample, "crowd.late") == "ARC_NOT_WRITTEN"


# ── followers ──


@pytest.mark.parametrize("background", [False, True])
def test_a_follower_sees_results_and_takes_none(background: bool) -> None:
    with make_engine(kept_network(), background=background) as engine:
        engine.modify(add={"far": "SELECT sid FROM reports WHERE pos > 50"})
        engine.enqueue("reports", [(0, 0, 99)])
        engine.drain()
        rows(engine, "all")
        name = engine.attach("recent", "SELECT sid FROM recent WHERE pos > 50")
        engine.drain()
        following = {o: engine.follow(o) for o in ("all", "alerts", "far", name)}
        engine.enqueue("reports", ROWS)
        engine.drain()
        seen = {}
        for output, follower in following.items():
            table = follower.next(0)
            assert table is not None
            seen[output] = [tuple(row.values()) for row in table.to_pylist()]
        doubled = [(1, 70), (2, 80), (4, 120)]
        assert seen == {"all": doubled, "alerts": [(0, 3)], "far": [(4,)], name: [(4,)]}
        assert rows(engine, "all") == doubled, "nothing was taken"
        assert following["all"].next(0) is None
        for follower in following.values():
            follower.close()
        assert not engine._parts.watch.active
        assert code(engine.follow, "everything") == "UNKNOWN_OUTPUT"


def test_a_slow_reader_loses_the_oldest_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        make_engine(network()) as engine,
        engine._parts.watch.followers.add("all", 0, most_rows=3) as follower,
    ):
        engine._parts.watch.refresh()
        for n in range(5):
            engine.enqueue("reports", [(n, n, 40), (n, n, 50)])
            engine.drain()
        assert follower.dropped == 8
        table = follower.next(0)
        assert table is not None
        assert table["sid"].to_pylist() == [4, 4]


def test_an_output_of_a_stream_is_followed() -> None:
    net = network()
    net.output("raw", "reports")
    with make_engine(net) as engine, engine.follow("raw") as follower:
        engine.enqueue("reports", ROWS)
        engine.drain()
        table = follower.next(0)
        assert table is not None
        assert [tuple(row.values()) for row in table.to_pylist()] == ROWS
        assert follower.next(0) is None


def test_a_follower_ends_with_its_query_and_with_the_engine() -> None:
    with make_engine(network()) as engine:
        engine.modify(add={"far": "SELECT sid FROM reports WHERE pos > 50"})
        far, every = engine.follow("far"), engine.follow("all")
        engine.modify(remove=["far"])
        engine.enqueue("reports", ROWS)
        engine.drain()
        assert far.next() is None
        assert far.closed
        assert every.next() is not None
        waiting = threading.Thread(target=every.next)
        waiting.start()
    waiting.join(10)
    assert not waiting.is_alive()
    assert followers.MOST_ROWS > 0


# ── history ──


def test_kept_rows_by_key_and_time() -> None:
    with make_engine(kept_network()) as engine:
        for n in range(40):
            engine.enqueue("reports", [(n % 4, n, 30 + n)])
            engine.drain()
        found = engine.point_rows("recent", key=3, since=10, until=20)
        assert plain(found) == [(3, n, 30 + n) for n in (11, 15, 19)]
        assert plain(engine.point_rows("recent", key="3", limit=1)) == [(3, 39, 69)]
        assert plain(engine.point_rows("recent", since="37")) == [
            (n % 4, n, 30 + n) for n in (37, 38, 39)
        ]
        assert plain(engine.point_rows("counts", until=2)) == [(0, 2), (2, 2)]
        assert engine.point_rows("recent", key=77).column_names == [
            "_seq",
            "_at",
            "sid",
            "time",
            "pos",
        ]
        assert code(engine.point_rows, "counts", key=1) == "BAD_CALL"
        assert code(engine.point_rows, "recent", key="one") == "BAD_CALL"
        assert code(engine.point_rows, "recent", since="soon") == "BAD_CALL"
        assert code(engine.point_rows, "recnt") == "UNKNOWN_POINT"


@pytest.mark.parametrize("background", [False, True])
def test_a_replay_ends_by_itself(background: bool) -> None:
    with make_engine(kept_network(), background=background) as engine:
        engine.enqueue("reports", [(n % 4, n, 30 + n) for n in range(20)])
        engine.drain()
        name = engine.replay("recent", since=5, until=8)
        by_two = "SELECT count(*) AS n FROM recent [RANGE 2, SLIDE 2, WA time]"
        counts = engine.replay("recent", since=4, until=9, into=by_two)
        again = engine.replay("recent", until=3, into=counts)
        engine.enqueue("reports", [(9, 30, 90)])
        engine.drain()
        assert rows(engine, name) == [(n % 4, n, 30 + n) for n in range(5, 9)]
        assert rows(engine, counts) == [(2,), (2,)], "the window at 8 is open when it ends"
        assert rows(engine, again) == [(2,)]
        attached = engine.stats()["attachments"]
        assert all(one["ended"] and one["caught_up"] for one in attached.values())
        assert engine._history.points["recent"].holds == {}
        engine.detach(name)
        assert code(engine.replay, "counts", since="x") == "BAD_CALL"


def test_a_replay_that_has_ended_stays_so_after_a_restart(tmp_path: Any) -> None:
    with make_engine(kept_network(), state=tmp_path) as engine:
        engine.enqueue("reports", [(n % 4, n, 30 + n) for n in range(20)])
        engine.drain()
        name = engine.replay("recent", since=5, until=6)
        engine.drain()
    with make_engine(kept_network(), state=tmp_path) as engine:
        engine.enqueue("reports", [(9, 30, 90)])
        engine.drain()
        assert rows(engine, name) == [(1, 5, 35), (2, 6, 36)]
        assert engine.stats()["attachments"][name]["ended"]


# ── previews, statistics ──


def test_a_preview_of_a_change_changes_nothing() -> None:
    with make_engine(network()) as engine:
        window = {"box": "aggregate", "input": "across", "order": {"on": "time"}}
        changed = {"crowd": {**window, "window": {"size": 3}, "compute": {"cnt": "count(*)"}}}
        found = engine.preview_change(add={"boxes": changed}, remove=["crowd"])
        assert "crowd" in str(found["rebuilt"])
        assert code(engine.preview_change, remove=["across"]) == code(
            engine.modify, remove=["across"]
        )
        assert (
            code(engine.preview_change, add={"q": "SELECT speed FROM reports"}) == "UNKNOWN_FIELD"
        )
        assert engine.preview_change(add={"q": "SELECT sid FROM reports"})["added"] == ["queries.q"]
        assert "q" not in engine.list_entities()["queries"]
        assert engine.modify(add={"boxes": changed}, remove=["crowd"]) == found


def test_statistics_of_arcs_inside_superboxes_and_of_queues() -> None:
    net = network()
    del net.outputs["all"], net.boxes["doubled"]  # `across` runs with `crowd` then
    with make_engine(net) as engine:
        engine.enqueue("reports", ROWS)
        engine.drain()
        arcs = engine.stats()["arcs"]
        assert arcs["across"]["tuples"] == 3
        assert arcs["across.rest"]["tuples"] == 1
        assert arcs["crowd"]["tuples"] == 1
        engine.pause()
        engine.enqueue("reports", [(1, 9, 50)])
        engine.wait(0)
        stream = engine.stats()["streams"]["reports"]
        assert stream["queued"] == 1
        assert stream["oldest_s"] >= 0
        assert engine.stats()["boxes"]["across"]["queued"] == 1


def test_boxes_and_streams_tell_the_same_queue_within_a_segment() -> None:
    net = au.Network("soldiers")
    net.output("o", net.stream("s", "v bigint").filter("v >= 0", name="f"))
    with make_engine(net, train=10) as engine:
        engine.pause()
        engine.enqueue("s", [(v,) for v in range(100)])
        engine.step(count=3)
        stats = engine.stats()
        assert stats["streams"]["s"]["queued"] == 70
        assert stats["boxes"]["f"]["queued"] == 70
