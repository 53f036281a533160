"""Arrow Flight: batches in, results out, tokens, roles, exactly once."""

from __future__ import annotations

import contextlib
import json
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from auroral.engine import Engine
from auroral.errors import RunError, UsageError
from auroral.server.addresses import FeedAddress
from auroral.server.flight import FlightFeed, FlightTls
from auroral.server.settings import ServerLimits
from tests.server.feeding import role_of, running

PATIENCE_S = 30.0
OFFSETS = pa.py_buffer(struct.pack("<ii", 0, 1))
REPORTS = pa.schema([("sid", pa.int32()), ("pos", pa.float64()), ("name", pa.string())])


@contextmanager
def serving(
    engine: Engine,
    address: str = "0",
    tls: FlightTls | None = None,
    limits: ServerLimits | None = None,
) -> Iterator[FlightFeed]:
    place = FeedAddress.parse(address, "--flight")
    feed = FlightFeed(engine, place, role_of, tls=tls, limits=limits)
    feed.start()
    try:
        yield feed
    finally:
        feed.stop()


@pytest.fixture
def engine() -> Iterator[Engine]:
    with running() as engine:
        yield engine


@pytest.fixture
def client(engine: Engine) -> Iterator[flight.FlightClient]:
    with serving(engine) as feed, flight.FlightClient(feed.address) as client:
        yield client


def bearing(token: str) -> flight.FlightCallOptions:
    return flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])


def batch(*rows: tuple[Any, Any, Any]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.record_batch(
        [pa.array(c, f.type) for c, f in zip(columns, REPORTS, strict=True)], REPORTS
    )


def put(
    client: flight.FlightClient,
    *batches: pa.RecordBatch,
    stream: str = "reports",
    token: str = "operate",
    positions: list[Any] | None = None,
) -> list[dict[str, Any]]:
    """Send batches one by one, and what was acknowledged."""
    descriptor = flight.FlightDescriptor.for_path(stream)
    writer, reader = client.do_put(descriptor, batches[0].schema, bearing(token))
    said = []
    for i, one in enumerate(batches):
        if positions is None:
            writer.write_batch(one)
        else:
            writer.write_with_metadata(one, json.dumps(positions[i]).encode())
        told = reader.read()
        if told is None:  # refused: closing tells why
            break
        said.append(json.loads(told.to_pybytes()))
    writer.close()
    return said


def take(client: flight.FlightClient, token: str = "operate", **ticket: Any) -> pa.Table:
    given = flight.Ticket(json.dumps({"output": "hot", **ticket}).encode())
    return client.do_get(given, bearing(token)).read_all()


def test_batches_go_in_and_results_come_out(engine: Engine, client: flight.FlightClient) -> None:
    said = put(client, batch((1, 31.0, "a"), (2, 3.0, "b")), batch())
    assert [one["accepted"] for one in said] == [2, 2]
    engine.drain()
    put(client, batch((3, 40.0, None)))
    engine.drain()
    assert take(client, limit=1).to_pylist() == [{"sid": 1, "pos": 31.0, "name": "a"}]
    assert take(client).to_pylist() == [{"sid": 3, "pos": 40.0, "name": None}]
    assert take(client).num_rows == 0


def test_columns_are_cast_without_loss_or_refused(
    engine: Engine, client: flight.FlightClient
) -> None:
    wide = pa.record_batch(
        {"name": pa.array(["a", "b"], pa.large_string()), "sid": [1, 1 << 40], "pos": [31, 32]}
    )
    said = put(client, wide)
    assert (said[0]["accepted"], said[0]["dead"]) == (1, 1)
    engine.drain()
    assert take(client).to_pylist() == [{"sid": 1, "pos": 31.0, "name": "a"}]
    assert "expected int, found 1099511627776" in engine.dead_letters.read_text()
    with pytest.raises(flight.FlightServerError, match=r"BAD_BATCH.*missing pos, name; unknown x"):
        put(client, pa.record_batch({"sid": [1], "x": [2]}))


def test_a_position_makes_a_batch_count_once(engine: Engine, client: flight.FlightClient) -> None:
    first, second = batch((1, 31.0, "a")), batch((2, 32.0, "b"))
    put(client, first, second, positions=[{"position": 1}, {"position": 2}])
    again = put(client, second, positions=[{"position": 2}])
    assert again == [{"accepted": 0, "dead": 0, "position": 2}]
    engine.drain()
    assert take(client).column("sid").to_pylist() == [1, 2]
    assert engine.position("reports") == 2
    with pytest.raises(flight.FlightServerError, match=r"BAD_CALL.*position"):
        put(client, first, positions=[17])


def test_an_output_is_followed_without_taking(engine: Engine, client: flight.FlightClient) -> None:
    found: list[pa.Table] = []
    given = flight.Ticket(b'{"output": "hot", "take": false, "limit": 2}')
    stream = client.do_get(given, bearing("view"))
    assert stream.schema.names == REPORTS.names
    reading = threading.Thread(target=lambda: found.append(stream.read_all()))
    reading.start()
    sid = 0
    deadline = time.monotonic() + PATIENCE_S
    while reading.is_alive():
        assert time.monotonic() < deadline, "two rows did not come"
        sid += 1
        put(client, batch((sid, 31.0, "a")))
        engine.drain()
        reading.join(0.05)
    assert found[0].num_rows == 2
    assert take(client).num_rows == sid


def test_following_ends_with_the_output(engine: Engine, client: flight.FlightClient) -> None:
    engine.modify(add={"outputs": {"later": {"from": "reports"}}})
    stream = client.do_get(flight.Ticket(b'{"output": "later", "take": false}'), bearing("view"))
    assert stream.schema.names == REPORTS.names
    engine.modify(remove=["outputs.later"])
    put(client, batch((1, 31.0, "a")))
    engine.drain()
    assert stream.read_all().num_rows == 0


def test_a_follower_is_told_what_it_has_missed(engine: Engine, monkeypatch: Any) -> None:
    opened, go_on = engine.follow, threading.Event()

    def follow(output: str) -> Any:
        follower = opened(output)
        follower._most_rows = 2
        following = follower.next

        def slowly(timeout_s: float | None = None) -> pa.Table | None:
            go_on.wait(PATIENCE_S)
            return following(timeout_s)

        monkeypatch.setattr(follower, "next", slowly)
        return follower

    monkeypatch.setattr(engine, "follow", follow)
    with serving(engine) as feed, flight.FlightClient(feed.address) as client:
        given = flight.Ticket(b'{"output": "hot", "take": false, "limit": 3}')
        stream = client.do_get(given, bearing("view"))
        assert stream.schema.names == REPORTS.names
        for sid in range(5):
            put(client, batch((sid, 31.0, "a")))
            engine.drain()
        go_on.set()
        found = [stream.read_chunk(), stream.read_chunk()]
        put(client, batch((5, 31.0, "a")))
        engine.drain()
        found.append(stream.read_chunk())
        assert [chunk.data["sid"].to_pylist() for chunk in found] == [[3], [4], [5]]
        assert [said(chunk)["dropped"] for chunk in found] == [3, 0, 0]


def said(chunk: Any) -> Any:
    return json.loads(chunk.app_metadata.to_pybytes())


def test_a_take_that_did_not_arrive_is_repeated(
    engine: Engine, client: flight.FlightClient
) -> None:
    for sid in (1, 2, 3):
        put(client, batch((sid, 31.0, "a")))
        engine.drain()
    for turn, rows in ((0, [1, 2]), (0, [1, 2]), (1, [3]), (1, [3]), (2, [])):
        assert take(client, limit=2, reader="r", turn=turn)["sid"].to_pylist() == rows
    with pytest.raises(flight.FlightServerError, match="OUTDATED_TURN"):
        take(client, limit=2, reader="r", turn=1)
    for wrong in ({"reader": "r"}, {"turn": 1}, {"reader": "", "turn": 1}, {"take": False}):
        ticket = {"reader": "r", "turn": 3, **wrong} if "take" in wrong else wrong
        with pytest.raises(flight.FlightServerError, match="BAD_CALL"):
            take(client, **ticket)


def test_an_engine_that_has_failed_says_so(engine: Engine, client: flight.FlightClient) -> None:
    def failed() -> Any:
        raise RunError("RUN_FAILED", "a step failed")

    engine.list_entities = failed  # type: ignore[method-assign]
    asked = (
        lambda: list(client.list_flights(options=bearing("view"))),
        lambda: client.get_flight_info(flight.FlightDescriptor.for_path("hot"), bearing("view")),
    )
    for ask in asked:
        with pytest.raises(flight.FlightServerError, match="RUN_FAILED: a step failed"):
            ask()


def test_a_follower_that_is_never_read_is_let_go(engine: Engine, monkeypatch: Any) -> None:
    """A call may be cancelled before the first batch is asked for."""
    streams: list[Any] = []
    monkeypatch.setattr(flight, "GeneratorStream", lambda _, batches: streams.append(batches))
    with serving(engine) as feed:
        assert feed._server is not None
        followers, opened = [], engine.follow

        def follow(output: str) -> Any:
            followers.append(opened(output))
            return followers[0]

        monkeypatch.setattr(engine, "follow", follow)
        monkeypatch.setattr("auroral.server.flight._require", lambda *_: None)
        feed._server.do_get(None, flight.Ticket(b'{"output": "hot", "take": false}'))
        assert not followers[0].closed
        streams.clear()
        assert followers[0].closed


def test_everything_is_listed_with_its_schema(client: flight.FlightClient) -> None:
    flights = {
        tuple(part.decode() for part in info.descriptor.path): info.schema.names
        for info in client.list_flights(options=bearing("view"))
    }
    assert flights == {("reports",): REPORTS.names, ("outputs", "hot"): REPORTS.names}
    info = client.get_flight_info(flight.FlightDescriptor.for_path("hot"), bearing("view"))
    assert json.loads(info.endpoints[0].ticket.ticket) == {"output": "hot", "take": True}
    for path in (("reports",), ("outputs", "hot")):
        descriptor = flight.FlightDescriptor.for_path(*path)
        assert client.get_schema(descriptor, bearing("view")).schema.names == REPORTS.names
    with pytest.raises(OSError, match="UNAUTHENTICATED"):
        client.get_schema(flight.FlightDescriptor.for_path("reports"))
    with pytest.raises(flight.FlightServerError, match="UNKNOWN_OUTPUT"):
        client.get_flight_info(flight.FlightDescriptor.for_path("cold"), bearing("view"))


def test_actions_tell_statistics(engine: Engine, client: flight.FlightClient) -> None:
    put(client, batch((1, 31.0, "a")))
    engine.drain()
    (stats,) = client.do_action(flight.Action("stats", b""), bearing("view"))
    assert json.loads(stats.body.to_pybytes())["streams"]["reports"]["in"] == 1
    (told,) = client.do_action(flight.Action("describe", b"hot"), bearing("view"))
    assert json.loads(told.body.to_pybytes())["name"] == "hot"
    with pytest.raises(flight.FlightServerError, match=r"BAD_CALL.*describe, stats"):
        list(client.do_action(flight.Action("start", b""), bearing("view")))
    assert {found.type for found in client.list_actions(bearing("view"))} == {"stats", "describe"}


@pytest.mark.parametrize("token", ["", "wrong"])
def test_without_a_token_nothing_is_told(client: flight.FlightClient, token: str) -> None:
    for call in (
        lambda: client.list_actions(bearing(token)),
        lambda: list(client.do_action(flight.Action("stats", b""), bearing(token))),
        lambda: client.get_flight_info(flight.FlightDescriptor.for_path("hot"), bearing(token)),
    ):
        with pytest.raises(flight.FlightUnauthenticatedError):
            call()
    with pytest.raises(flight.FlightUnauthenticatedError):
        list(client.list_flights(options=bearing(token)))
    with pytest.raises(flight.FlightUnauthenticatedError):
        take(client, token)
    with pytest.raises(flight.FlightUnauthenticatedError):
        put(client, batch((1, 31.0, "a")), token=token)


def test_roles_say_what_may_be_done(engine: Engine, client: flight.FlightClient) -> None:
    with pytest.raises(flight.FlightUnauthorizedError, match="operator"):
        put(client, batch((1, 31.0, "a")), token="view")
    with pytest.raises(flight.FlightUnauthorizedError, match="operator"):
        take(client, "view")
    assert engine.stats()["streams"]["reports"]["in"] == 0


def test_mistakes_are_told_in_words(client: flight.FlightClient) -> None:
    with pytest.raises(flight.FlightServerError, match=r"UNKNOWN_STREAM.*reports") as told:
        put(client, batch((1, 31.0, "a")), stream="report")
    assert "Traceback" not in str(told.value)
    with pytest.raises(flight.FlightServerError, match="expected a ticket"):
        take(client, take="yes")
    with pytest.raises(flight.FlightServerError, match="expected a ticket"):
        take(client, limit=-1)


def test_a_unix_socket_is_private(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "flight.sock"
    with serving(engine, f"unix:{path}") as feed:
        assert path.stat().st_mode & 0o077 == 0
        with flight.FlightClient(feed.address) as client:
            put(client, batch((1, 31.0, "a")))
    assert not path.exists()


def test_it_stops_although_a_client_says_nothing(engine: Engine) -> None:
    with serving(engine) as feed, flight.FlightClient(feed.address) as client:
        writer, _ = client.do_put(
            flight.FlightDescriptor.for_path("reports"), REPORTS, bearing("edit")
        )
        writer.write_batch(batch((1, 31.0, "a")))
        follower = client.do_get(
            flight.Ticket(b'{"output": "hot", "take": false}'), bearing("view")
        )
        threading.Timer(0.1, writer.close).start()
        feed.stop()
        assert follower.read_all().num_rows <= 1


def test_others_cannot_be_reached_without_tls(engine: Engine) -> None:
    for address in ("0.0.0.0:0", "[::]:0", "example.com:1"):
        with pytest.raises(UsageError, match="INSECURE_BIND"):
            FlightFeed(engine, FeedAddress.parse(address, "--flight"), role_of)
    FlightFeed(engine, FeedAddress.parse("0.0.0.0:0", "--flight"), role_of, insecure=True)
    with pytest.raises(UsageError, match="BAD_ADDRESS"):
        FeedAddress.parse("nowhere", "--flight")


def test_batches_calls_and_takes_are_bounded(engine: Engine) -> None:
    limits = ServerLimits(rows=2, flights=1)
    with serving(engine, limits=limits) as feed, flight.FlightClient(feed.address) as client:
        with pytest.raises(flight.FlightServerError, match="TOO_LARGE"):
            put(client, batch(*[(n, 99.0, "a") for n in range(3)]))
        descriptor = flight.FlightDescriptor.for_path("reports")
        writer, told = client.do_put(descriptor, REPORTS, bearing("operate"))
        with writer:
            writer.write_batch(batch((1, 99.0, "a")))
            assert told.read() is not None
            with pytest.raises(flight.FlightUnavailableError, match="TOO_MANY_CALLS"):
                put(client, batch((1, 99.0, "a")))
        put(client, batch((2, 99.0, "b")))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (pa.array(["x" * 10_000] * 200).dictionary_encode(), "TOO_LARGE"),
        (pa.array(["x" * 10_000] * 200).cast(pa.string_view()), "BAD_BODY: views"),
        (pa.RunEndEncodedArray.from_arrays([200], ["x" * 10_000]), "BAD_BODY: views"),
        (pa.Array.from_buffers(pa.string(), 1, [None, OFFSETS, pa.py_buffer(b"\xff")]), "UTF8"),
    ],
)
def test_batches_are_judged_as_bodies_are(engine: Engine, name: pa.Array, told: str) -> None:
    limits = ServerLimits(body_bytes=1_000_000)
    columns = {"sid": pa.array([1] * len(name), pa.int32()), "pos": [99.0] * len(name)}
    with serving(engine, limits=limits) as feed, flight.FlightClient(feed.address) as client:
        with pytest.raises(flight.FlightServerError, match=told):
            put(client, pa.record_batch({**columns, "name": name}))
        assert put(client, batch((2, 99.0, "b")))[-1]["accepted"] == 1


def test_followers_leave_calls_to_those_who_put_and_take(engine: Engine) -> None:
    limits = ServerLimits(flights=1)
    ticket = flight.Ticket(b'{"output": "hot", "take": false}')
    with serving(engine, limits=limits) as feed, flight.FlightClient(feed.address) as client:
        following = client.do_get(ticket, bearing("view"))
        with contextlib.closing(engine.follow("hot")) as seen:
            put(client, batch((1, 99.0, "a")))
            assert seen.next(PATIENCE_S) is not None
        assert following.read_chunk().data.num_rows == 1
        put(client, batch((2, 99.0, "b")))
        with pytest.raises(flight.FlightUnavailableError, match="TOO_MANY_CALLS"):
            client.do_get(ticket, bearing("view")).read_chunk()
        following.cancel()


def test_nothing_is_acknowledged_while_the_engine_is_behind(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, backlog = threading.Semaphore(0), [5]

    def told_backlog(_engine: Engine) -> int:
        asked.release()
        return backlog[0]

    monkeypatch.setattr(Engine, "backlog", told_backlog)
    with (
        serving(engine, limits=ServerLimits(backlog=5)) as feed,
        flight.FlightClient(feed.address) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        sent = pool.submit(put, client, batch((1, 99.0, "a")), positions=[{"position": 7}])
        for _ in range(3):
            assert asked.acquire(timeout=20)
        assert not sent.done()
        assert engine.position("reports") is None
        backlog[0] = 4
        sent.result(20)
        assert engine.position("reports") == 7
