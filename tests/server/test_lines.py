"""Line feeds: lines become tuples, bad lines dead letters, and senders wait for the engine."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.engine import Engine
from auroral.errors import RunError, UsageError
from auroral.server.lines import LineFeed, LineLimits, LinesOption
from tests.server.feeding import role_of, running

PATIENCE_S = 20.0


@pytest.fixture
def engine() -> Iterator[Engine]:
    with running() as engine:
        yield engine


@contextmanager
def serving(
    engine: Engine, format: str, where: str = "127.0.0.1:0", **limits: Any
) -> Iterator[LineFeed]:
    option = LinesOption.parse(f"reports={where},{format}")
    feed = LineFeed(engine, option, role_of, limits=LineLimits(**limits))
    feed.start()
    try:
        yield feed
    finally:
        feed.stop()


def connect(feed: LineFeed, token: str | None = "operate") -> socket.socket:
    """A connection, and what it was told first, if a token is given."""
    place = feed.address.partition("=")[2].rpartition(",")[0]
    if place.startswith("unix:"):
        found = socket.socket(socket.AF_UNIX)
        found.connect(place.removeprefix("unix:"))
        return found
    host, _, port = place.rpartition(":")
    found = socket.create_connection((host, int(port)), PATIENCE_S)
    if token is not None:
        found.sendall(f"AUTH {token}\n".encode())
    return found


def said(connection: socket.socket) -> str:
    return connection.makefile().readline().strip()


def until(engine: Engine, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        engine.wait(0.02)


def counted(engine: Engine) -> tuple[int, int]:
    found = engine.stats()["streams"]["reports"]
    return found["in"], found["dead"]


def letters(engine: Engine) -> list[tuple[int, str, str]]:
    lines = engine.dead_letters.read_text().splitlines()
    return [(d["line"], d["reason"], d["row"]) for d in map(json.loads, lines)]


def hot(engine: Engine) -> list[dict[str, Any]]:
    engine.drain()
    return list(engine.dequeue("hot").to_pylist())


def test_json_lines_become_tuples_and_bad_ones_dead_letters(engine: Engine) -> None:
    with serving(engine, "ndjson") as feed, connect(feed) as sender:
        assert said(sender) == "OK"
        sender.sendall(b'{"sid": 1, "pos": 31, "name": "a"}\n{"sid": 2, "po')
        sender.sendall(b's": 32}\nnonsense\n\n{"sid": "x"}\n{"sid": 3, "pos": 33}')
        sender.shutdown(socket.SHUT_WR)
        until(engine, lambda: counted(engine) == (3, 2))
        assert [row["sid"] for row in hot(engine)] == [1, 2, 3]
        first, second = letters(engine)
        assert (first[0], first[2]) == (3, "nonsense")
        assert second[:2] == (5, "sid: expected int, found 'x'")
        assert feed.statistics()["tuples"] == 3


@pytest.mark.parametrize("header", ['pos,name,sid\n31,"a\nb",1\n', '1,31,"a\nb"\n'])
def test_csv_may_have_a_header(engine: Engine, header: str) -> None:
    with serving(engine, "csv") as feed, connect(feed) as sender:
        sender.sendall(header.encode())
        until(engine, lambda: counted(engine) == (1, 0))
        assert hot(engine) == [{"sid": 1, "pos": 31.0, "name": "a\nb"}]


def test_a_line_that_was_cut_off_is_not_taken_for_a_whole_one(engine: Engine) -> None:
    with serving(engine, "csv") as feed, connect(feed) as sender:
        sender.sendall(b"1,31,a\n2,32,b\n3,3")
        sender.shutdown(socket.SHUT_WR)
        until(engine, lambda: counted(engine) == (2, 1))
        assert letters(engine) == [(3, "the connection ended before the end of the line", "3,3")]


def test_a_converter_reads_lines(engine: Engine) -> None:
    with serving(engine, "influx") as feed, connect(feed) as sender:
        sender.sendall(b"m,name=a sid=1i,pos=31\nm sid=\nm,name=b sid=2i,pos=32\n")
        until(engine, lambda: counted(engine) == (2, 1))
        assert [row["name"] for row in hot(engine)] == ["a", "b"]
        assert letters(engine)[0][0] == 2


def test_a_line_that_is_too_long_costs_no_other(engine: Engine) -> None:
    with serving(engine, "ndjson", line_bytes=1000) as feed, connect(feed) as sender:
        sender.sendall(b'{"sid": 1, "pos": 31}\n')
        until(engine, lambda: counted(engine)[0] == 1)
        sender.sendall(b"x" * 300_000 + b"\n" + b'{"sid": 2, "pos": 32}\n')
        until(engine, lambda: counted(engine) == (2, 1))
        assert letters(engine)[0][:2] == (2, "longer than 1000 bytes")


def test_without_a_token_nothing_is_taken(engine: Engine) -> None:
    with serving(engine, "ndjson") as feed:
        for token, why in (("wrong", "UNAUTHENTICATED"), ("view", "FORBIDDEN")):
            with connect(feed, token) as sender:
                assert said(sender).startswith(f"ERR {why}")
        with connect(feed, None) as sender:
            sender.sendall(b'{"sid": 1, "pos": 31}\n')
            assert said(sender).startswith("ERR UNAUTHENTICATED")
        assert feed.statistics()["refused"] == 3
    assert counted(engine) == (0, 0)


def test_who_says_nothing_is_disconnected(engine: Engine) -> None:
    with serving(engine, "ndjson", auth_s=0.01) as feed, connect(feed, None) as sender:
        assert said(sender).startswith("ERR UNAUTHENTICATED")
        assert sender.recv(1) == b""


def test_a_unix_socket_is_private_and_needs_no_token(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "reports.sock"
    with serving(engine, "ndjson", f"unix:{path}") as feed, connect(feed) as sender:
        assert path.stat().st_mode & 0o077 == 0
        sender.sendall(b'{"sid": 1, "pos": 31}\n')
        until(engine, lambda: counted(engine) == (1, 0))
    assert not path.exists()


def test_too_many_connections_are_refused(engine: Engine) -> None:
    with serving(engine, "ndjson", connections=1) as feed, connect(feed) as sender:
        assert said(sender) == "OK"
        with connect(feed) as other:
            assert said(other) == "ERR TOO_MANY_CONNECTIONS"


def test_senders_wait_while_the_engine_is_behind(engine: Engine, monkeypatch: Any) -> None:
    behind = [10**9]
    monkeypatch.setattr(engine, "backlog", lambda: behind[0])
    line = b'{"sid": 1, "pos": 31, "name": "%s"}\n' % (b"x" * 1000)
    with serving(engine, "ndjson", pending_bytes=1 << 16) as feed, connect(feed) as sender:
        assert said(sender) == "OK"
        sender.settimeout(0.5)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 200 << 20:
                sent += sender.send(line * 100)
        assert sent < 200 << 20
        assert feed.statistics()["bytes"] < 4 << 20
        assert counted(engine) == (0, 0)
        behind[0] = 0
        sender.settimeout(PATIENCE_S)
        sender.shutdown(socket.SHUT_WR)
        until(engine, lambda: counted(engine)[0] == sent // len(line))


def test_senders_of_lines_that_are_too_long_wait_as_well(engine: Engine, monkeypatch: Any) -> None:
    behind = [10**9]
    monkeypatch.setattr(engine, "backlog", lambda: behind[0])
    line = b"x" * 300_000 + b"\n"  # longer than what is read at once
    with (
        serving(engine, "ndjson", pending_bytes=1 << 16, line_bytes=1000) as feed,
        connect(feed) as sender,
    ):
        assert said(sender) == "OK"
        sender.settimeout(0.5)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 64 << 20:
                sent += sender.send(line)
        assert sent < 64 << 20
        assert feed.statistics()["bytes"] < 4 << 20
        behind[0] = 0


def test_what_came_in_whole_lines_is_enqueued_at_the_end(engine: Engine) -> None:
    with serving(engine, "ndjson", gather_s=60.0) as feed:
        with connect(feed) as sender:
            assert said(sender) == "OK"
            sender.sendall(b'{"sid": 1, "pos": 31}\n')
            until(engine, lambda: feed.statistics()["bytes"] > 0)
        feed.stop()
        until(engine, lambda: counted(engine) == (1, 0))  # it is counted when it is sealed


def test_many_connections_share_batches(engine: Engine) -> None:
    with serving(engine, "ndjson") as feed:
        senders = [connect(feed) for _ in range(20)]
        for i, sender in enumerate(senders):
            sender.sendall(b'{"sid": %d, "pos": 31}\n{"sid": %d}\nbad\n' % (i, i))
        until(engine, lambda: counted(engine) == (40, 20))
        for sender in senders:
            sender.close()
        assert {line for line, _, _ in letters(engine)} == {3}
        assert sorted(row["sid"] for row in hot(engine)) == list(range(20))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RunError("DISK_FULL", "no space\nis left"), "ERR DISK_FULL: no space is left"),
        (ZeroDivisionError("a secret"), "ERR INTERNAL the server failed; its log says why"),
    ],
)
def test_what_cannot_be_enqueued_is_told_and_counted(
    engine: Engine, monkeypatch: Any, error: Exception, told: str
) -> None:
    receive, failing = engine.receive, [True]

    def receive_or_fail(*given: Any, **more: Any) -> Any:
        if failing[0]:
            raise error
        return receive(*given, **more)

    monkeypatch.setattr(engine, "receive", receive_or_fail)
    line = b'{"sid": 1, "pos": 31}\n'
    with serving(engine, "ndjson") as feed:
        with connect(feed) as sender, connect(feed) as idle:
            assert [said(sender), said(idle)] == ["OK", "OK"]
            sender.sendall(line * 3)
            assert sender.makefile().read() == f"{told}\n"  # and it is closed
            assert idle.makefile().read() == f"{told}\n"
        assert feed.statistics()["lost_bytes"] == 3 * len(line)
        failing[0] = False
        with connect(feed) as sender:  # who connects again is served
            assert said(sender) == "OK"
            sender.sendall(line)
            until(engine, lambda: counted(engine) == (1, 0))
        assert feed.statistics()["lost_bytes"] == 3 * len(line)


@pytest.mark.parametrize("format", ["csv", "influx", "ndjson"])
def test_lines_of_a_stream_that_is_no_more_are_told_and_counted(
    engine: Engine, format: str
) -> None:
    with serving(engine, format) as feed, connect(feed) as sender:
        assert said(sender) == "OK"
        other = au.Network("feeding")
        other.output("hot", other.stream("others", schema="sid int").filter("sid > 30"))
        engine.modify(network=other)
        sender.sendall(b"m sid=1i,pos=31\n")
        assert sender.makefile().readline().startswith("ERR UNKNOWN_STREAM")
        until(engine, lambda: feed.statistics()["connections"] == 0)
        assert feed.statistics()["lost_bytes"] == len(b"m sid=1i,pos=31\n")


def test_a_line_that_a_broken_connection_leaves_is_counted(engine: Engine) -> None:
    with serving(engine, "ndjson") as feed:
        sender = connect(feed)
        assert said(sender) == "OK"
        sender.sendall(b'{"sid": 1')
        until(engine, lambda: feed.statistics()["bytes"] == 9)
        linger = struct.pack("ii", 1, 0)  # closing resets the connection
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        sender.close()
        until(engine, lambda: feed.statistics()["connections"] == 0)
        assert feed.statistics()["lost_bytes"] == 9


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("reports", "BAD_OPTION"),
        ("reports=nowhere", "BAD_ADDRESS"),
        ("reports=127.0.0.1:1,yaml", "UNKNOWN_CONVERTER"),
    ],
)
def test_options_are_checked(text: str, code: str) -> None:
    with pytest.raises(UsageError, match=code):
        LinesOption.parse(text)


def test_where_it_cannot_listen_is_told(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="INSECURE_BIND"):
        LineFeed(engine, LinesOption.parse("reports=0.0.0.0:0"), role_of)
    with pytest.raises(UsageError, match=r"UNKNOWN_STREAM.*reports"):
        LineFeed(engine, LinesOption.parse("report=0"), role_of).start()
    taken = tmp_path / "file"
    taken.write_text("mine")
    with pytest.raises(RunError, match=r"CANNOT_BIND.*exists already"):
        LineFeed(engine, LinesOption.parse(f"reports=unix:{taken}"), role_of).start()
    with serving(engine, "ndjson") as feed:
        port = feed.address.rpartition(":")[2].partition(",")[0]
        with pytest.raises(RunError, match="CANNOT_BIND"):
            LineFeed(engine, LinesOption.parse(f"reports={port}"), role_of).start()
