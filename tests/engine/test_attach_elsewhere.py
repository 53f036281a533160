"""Attaching from another process: to a network that runs, and to a directory that waits."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import auroral as au
from auroral.engine.points.attach_socket import SOCKET, ask, is_served
from auroral.engine.points.stored import StoredHistory, opened, stored_network
from auroral.engine.runtime.in_process import InProcessExecutor
from auroral.errors import AuroralError
from tests.conformance.sparkless import make_engine

from .test_attach import feed, network, rows

WINDOWS = "SELECT sid, count(*) AS n FROM recent [RANGE 5, WA t] GROUP BY sid"


def joined(tables: Iterator[pa.Table]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def looked(state: Path, sql: str, point: str = "recent") -> list[tuple[Any, ...]]:
    with opened(state) as store:
        found = stored_network(store, None)
        return joined(StoredHistory(store, found, InProcessExecutor()).rows(point, sql))


def contents(state: Path) -> set[str]:
    return {path.name for path in (state / "segments").iterdir()}


@pytest.mark.parametrize("ended", [False, True])
def test_a_directory_tells_its_history_and_stays_as_it_is(tmp_path: Path, ended: bool) -> None:
    net = network({"rows": 12})
    with make_engine(net, state=tmp_path) as engine:
        feed(engine, range(40))
        engine.attach("recent", WINDOWS, name="hot")
        engine.attach("recent", lambda arc: arc.filter("sid = 1"), name="ones")
        engine.drain()
        if ended:
            engine.finish()
        expected = rows(engine, "hot")
    before = contents(tmp_path)
    assert looked(tmp_path, WINDOWS) == expected
    assert [t for (t,) in looked(tmp_path, "SELECT t FROM recent")] == [
        t for t in range(25, 40) if t % 4
    ]
    assert contents(tmp_path) == before
    with make_engine(net, state=tmp_path) as engine:
        assert set(engine.stats()["attachments"]) == {"hot", "ones"}
        if not ended:
            feed(engine, range(40, 50))
            assert [t for _, t, _ in rows(engine, "ones")][-1] == 49


def test_what_was_not_processed_is_not_seen(tmp_path: Path) -> None:
    net = network()
    with make_engine(net, state=tmp_path) as engine:
        feed(engine, range(8))
        feed(engine, range(8, 12), drain=False)
    assert [t for (t,) in looked(tmp_path, "SELECT t FROM recent")] == [1, 2, 3, 5, 6, 7]
    with make_engine(net, state=tmp_path) as engine:
        engine.drain()
        assert [t for _, t, _ in rows(engine, "all")][-1] == 11


@pytest.mark.parametrize(
    ("point", "sql", "code"),
    [
        ("nowhere", "SELECT t FROM nowhere", "UNKNOWN_POINT"),
        ("recent", "SELECT t FROM other", "UNKNOWN_STREAM"),
        ("recent", "SELECT", "BAD_QUERY"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, point: str, sql: str, code: str) -> None:
    net = network()
    with make_engine(net, state=tmp_path, background=True) as engine:
        feed(engine, range(4))
        assert is_served(tmp_path)
        with pytest.raises(AuroralError) as live:
            list(ask(tmp_path, point, sql, follow=False))
    with pytest.raises(AuroralError) as stored:
        looked(tmp_path, sql, point)
    assert live.value.code == stored.value.code == code


def test_a_directory_without_state_is_told(tmp_path: Path) -> None:
    with pytest.raises(au.StateError, match="there is no state"):
        looked(tmp_path / "none", "SELECT t FROM recent")
    assert not (tmp_path / "none").exists()


def test_a_network_that_runs_answers(tmp_path: Path) -> None:
    with make_engine(network(), state=tmp_path, background=True) as engine:
        feed(engine, range(10))
        mode = (tmp_path / SOCKET).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
        found = joined(ask(tmp_path, "recent", "SELECT t FROM recent", follow=False))
        assert found == [(t,) for t in range(10) if t % 4]
        with pytest.raises(au.StateError, match="another run uses this state directory"):
            looked(tmp_path, "SELECT t FROM recent")
    assert not (tmp_path / SOCKET).exists()
    assert not is_served(tmp_path)


def test_who_follows_gets_what_flows(tmp_path: Path) -> None:
    with make_engine(network(), state=tmp_path, background=True) as engine:
        feed(engine, range(4))
        tables = ask(tmp_path, "recent", "SELECT t FROM recent", follow=True)
        got: list[Any] = []
        seen = threading.Event()

        def follow() -> None:
            for table in tables:
                got.extend(table["t"].to_pylist())
                if len(got) >= 6:
                    seen.set()

        thread = threading.Thread(target=follow)
        thread.start()
        feed(engine, range(4, 8))
        assert seen.wait(30)
        assert list(engine.stats()["attachments"]) == ["attached_1"]
    thread.join(30)
    assert got == [1, 2, 3, 5, 6, 7]
    with make_engine(network(), state=tmp_path) as engine:
        assert engine.stats()["attachments"] == {}, "it was attached for a while only"


def test_a_request_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    import socket

    with make_engine(network(), state=tmp_path, background=True):
        for request in (b"\n", b"no json\n", b'{"point": 1}\n', b"[]\n"):
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            client.connect(str(tmp_path / SOCKET))
            client.sendall(request)
            answer = json.loads(client.makefile("rb").readline())
            client.close()
            assert answer["error"]["code"] == "BAD_CALL"
