"""WebSockets: pictures that patches keep up to date, followers, and clients that do not read."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from queue import Queue
from typing import Any

import pyarrow as pa
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from auroral.engine.inspect.followers import Follower
from auroral.server.delta import apply_patch, without_nulls
from auroral.server.settings import ServerLimits
from auroral.server.wire_rows import row_objects
from tests.server.serving import READINGS, Site, site


@pytest.fixture(scope="module")
def plant() -> Iterator[Site]:
    with site() as found:
        yield found


def frames(opened: ClientConnection, kind: str) -> Iterator[dict[str, Any]]:
    """The frames of a kind, as they come."""
    while True:
        frame = json.loads(opened.recv(timeout=20))
        if frame["type"] == kind:
            yield frame


def test_patches_keep_a_picture_up_to_date(plant: Site) -> None:
    with plant.socket("live") as opened:
        opened.send(json.dumps({"picture": True}))
        coming = frames(opened, "picture")
        first = next(coming)
        assert first["whole"]
        picture, seq = without_nulls(first["picture"]), first["seq"]
        plant.ask("POST", "streams/readings", json=READINGS)
        entered = first["picture"]["arcs"]["readings"]["tuples"] + len(READINGS)
        for frame in coming:
            assert not frame["whole"]
            assert frame["seq"] > seq
            picture, seq = apply_patch(picture, frame["patch"]), frame["seq"]
            if picture["arcs"]["readings"]["tuples"] == entered:
                break
        assert picture["arcs"]["readings"]["rate"] > 0
        assert picture["state"] == "running"


def test_samples_and_stories_come_when_they_change(plant: Site) -> None:
    with plant.socket("live") as opened:
        wanted = {"samples": [{"arc": "hot", "limit": 2}], "stories": ["hot", "nope"]}
        opened.send(json.dumps(wanted))
        assert next(frames(opened, "sample"))["arc"] == "hot"
        plant.ask("POST", "streams/readings", json=[{"machine": "x", "at": 99, "celsius": 111.0}])
        for frame in frames(opened, "sample"):
            if [row[2:] for row in frame["table"]["rows"]][-1:] == [["x", 99, 111.0]]:
                break
        two = [{"arc": "hot", "limit": 2, "where": where} for where in (None, "celsius > 1000")]
        opened.send(json.dumps({"samples": two}))
        seen = {}
        for frame in frames(opened, "sample"):
            seen[frame["limit"], frame["where"]] = len(frame["table"]["rows"])
            if len(seen) == 2:
                break
        assert seen == {(2, None): 2, (2, "celsius > 1000"): 0}
        bad = {"samples": [{"arc": "nope", "limit": 2}]}
        opened.send(json.dumps(bad))
        for frame in frames(opened, "sample"):
            if frame["arc"] == "nope":
                assert frame["error"]["code"].startswith("UNKNOWN_")
                break


def test_samples_are_taken_in_the_threads_of_those_who_look(
    plant: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, sample = Queue[str](), plant.engine.sample

    def looked(*given: Any) -> Any:
        threads.put(threading.current_thread().name)
        return sample(*given)

    monkeypatch.setattr(plant.engine, "sample", looked)
    with plant.socket("live") as opened:
        opened.send(json.dumps({"samples": [{"arc": "hot", "limit": 2}]}))
        assert threads.get(timeout=20).startswith("auroral-serve-looks")


@pytest.mark.parametrize("text", ["nonsense", '{"picture": "maybe"}', '{"unknown": 1}', "[]"])
def test_subscriptions_that_do_not_fit_are_told(plant: Site, text: str) -> None:
    with plant.socket("live") as opened:
        opened.send(text)
        assert next(frames(opened, "error"))["problem"]["code"] == "BAD_BODY"
        opened.send(json.dumps({"picture": True}))  # and it goes on
        assert next(frames(opened, "picture"))["whole"]


FIELDS = [
    {"name": "machine", "type": "string"},
    {"name": "at", "type": "int"},
    {"name": "celsius", "type": "double"},
]


@pytest.mark.parametrize("path", ["live", "outputs/alerts/live"])
def test_bytes_are_a_mistake_of_the_client(
    plant: Site, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with plant.socket(path) as opened:
        opened.send(b"\x00\x01")
        told = [json.loads(text) for text in opened]
    assert told[-1]["problem"]["code"] == "BAD_BODY"
    assert not [one for one in caplog.records if one.exc_info]


def test_followers_get_results_without_taking_them(plant: Site) -> None:
    plant.engine.drain(10)
    plant.get("outputs/alerts")
    with plant.socket("outputs/alerts/live") as opened:
        assert json.loads(opened.recv(timeout=20)) == {"rows": [], "dropped": 0}  # it follows now
        row = {"machine": "saw", "at": 200, "celsius": 150.0}
        plant.ask("POST", "streams/readings", json=[row])
        assert json.loads(opened.recv(timeout=20)) == {
            "fields": FIELDS,
            "rows": [row],
            "dropped": 0,
        }
    plant.engine.drain(10)
    assert plant.get("outputs/alerts")["rows"] == [["saw", 200, 150.0]]


def test_rows_of_followers_are_converted_beside_the_event_loop(
    plant: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def convert(table: pa.Table) -> list[dict[str, Any]]:
        threads.append(threading.current_thread().name)
        return row_objects(table)

    monkeypatch.setattr("auroral.server.live.row_objects", convert)
    with plant.socket("outputs/alerts/live") as opened:
        assert json.loads(opened.recv(timeout=20)) == {"rows": [], "dropped": 0}
        row = {"machine": "saw", "at": 300, "celsius": 150.0}
        plant.ask("POST", "streams/readings", json=[row])
        assert json.loads(opened.recv(timeout=20)) == {
            "fields": FIELDS,
            "rows": [row],
            "dropped": 0,
        }
    assert len(threads) == 1
    assert threads[0].startswith("auroral-serve-followers")
    plant.engine.dequeue("alerts")


def test_a_follower_that_comes_after_its_client_has_gone_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hold, made = threading.Event(), Queue[Follower]()
    with site(limits=ServerLimits(request_s=0.1)) as found:
        follow = found.engine.follow

        def slow(output: str) -> Follower:
            assert hold.wait(30)
            follower = follow(output)
            made.put(follower)
            return follower

        monkeypatch.setattr(found.engine, "follow", slow)
        with found.socket("outputs/alerts/live") as opened:
            assert json.loads(opened.recv(timeout=20))["problem"]["code"] == "TIMEOUT"
            with pytest.raises(ConnectionClosed):
                opened.recv(timeout=20)
        hold.set()
        follower = made.get(timeout=20)
        assert follower.next(20) is None  # it was closed while it waited
        assert follower.closed


def test_followers_of_what_does_not_exist_are_told(plant: Site) -> None:
    with plant.socket("outputs/nope/live") as opened:
        assert json.loads(opened.recv(timeout=20))["problem"]["code"] == "UNKNOWN_OUTPUT"
        with pytest.raises(ConnectionClosed):
            opened.recv(timeout=20)


def test_a_client_that_does_not_read_is_closed() -> None:
    document = {
        "network": "wide",
        "streams": {"s": {"schema": {"text": "string"}}},
        "boxes": {"all": {"box": "filter", "input": "s", "where": "true"}},
        "outputs": {"o": {"from": "all"}},
    }
    with (
        site(document, limits=ServerLimits(slow_socket_s=0.5)) as found,
        found.socket("live") as other,
        socket.create_connection(("127.0.0.1", int(found.http.url.rpartition(":")[2]))) as slow,
    ):
        other.send(json.dumps({"picture": True}))
        pictures = frames(other, "picture")
        slow.sendall(
            (
                "GET /api/v1/outputs/o/live HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                f"Authorization: Bearer {found.tokens['viewer']}\r\n\r\n"
            ).encode()
        )
        assert b"101" in slow.recv(12)
        guard: Any = found.http._server.config.app
        sent = 0
        deadline = time.monotonic() + 60
        while guard.sockets > 1:
            assert time.monotonic() < deadline, "it was not closed"
            sent += (
                found.ask("POST", "streams/s", json=[{"text": "x" * 500_000}]).status_code == 200
            )
            next(pictures)  # the other client goes on meanwhile
        assert sent
        assert found.get("stats")["streams"]["s"]["in"] == sent
