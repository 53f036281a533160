"""Arrow Flight: batches go into streams and out of outputs as Arrow, without Python rows."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import flight

from auroral.catalog import public_entity
from auroral.engine import Engine
from auroral.engine.inspect.followers import Follower
from auroral.errors import AuroralError, RunError, UsageError, closest, list_existing
from auroral.server.addresses import FeedAddress
from auroral.server.arrow_bodies import require_own_values, require_sound
from auroral.server.problems import bad_body
from auroral.server.settings import ServerLimits
from auroral.server.taking import TakenPages
from auroral.server.tokens import Role, may

ACTIONS = {
    "stats": "Statistics of the engine, as JSON.",
    "describe": "What is known of one entity, as JSON; the body is its name.",
}
_STOP_S = 5.0
_FOLLOW_S = 0.25
_POLL_S = 0.02
_ROWS = 64 * 1024
_MOST_NAME = 200
T = TypeVar("T")


@dataclass(frozen=True)
class FlightTls:
    """The certificate and key that the server has, in PEM."""

    certificate: bytes
    key: bytes


class FlightFeed:
    """A Flight server beside the engine; `start` binds it, `address` says where.

    `role_of` tells the role of a token, or None. Without TLS it binds to the loopback only,
    unless `insecure`.
    """

    def __init__(
        self,
        engine: Engine,
        address: FeedAddress,
        role_of: Callable[[str], Role | None],
        *,
        tls: FlightTls | None = None,
        insecure: bool = False,
        limits: ServerLimits | None = None,
    ):
        address.require_safe("--flight", tls=tls is not None, insecure=insecure)
        self._engine = engine
        self._bind = address
        self._role_of = role_of
        self._tls = tls
        self._limits = limits or ServerLimits()
        self._server: _FlightServer | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Bind and begin to serve."""
        scheme = "grpc+tls" if self._tls else "grpc+tcp"
        self._bind.clear_path()
        given: dict[str, Any] = {}
        if self._tls:
            given["tls_certificates"] = [(self._tls.certificate, self._tls.key)]

        def bound(location: str) -> _FlightServer:
            middleware = {"role": _RoleMiddlewareFactory(self._role_of)}
            return _FlightServer(
                self._engine, self._limits, location, middleware=middleware, **given
            )

        try:
            if self._bind.path is not None:
                with self._bind.private() as path:
                    self._server = bound(f"grpc+unix://{path}")
            else:
                self._server = bound(f"{scheme}://{self._bind.host}:{self._bind.port}")
        except (pa.ArrowException, flight.FlightError, OSError) as error:
            raise RunError(
                "CANNOT_BIND", f"cannot bind {self._bind}: {error}", where="--flight"
            ) from None
        self._thread = threading.Thread(
            target=self._server.serve, daemon=True, name="auroral-flight"
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """Where clients connect to."""
        if self._server is None or self._bind.path is not None:
            return f"grpc+unix://{self._bind.path}"
        scheme = "grpc+tls" if self._tls else "grpc"
        return f"{scheme}://{self._bind.shown_host}:{self._server.port}"

    def statistics(self) -> dict[str, int]:
        """Nothing: streams and outputs have their own figures."""
        return {}

    def stop(self) -> None:
        """Take no more calls; those under way that do not end are cut off."""
        server, self._server = self._server, None
        if server is None:
            return
        server.stopping.set()
        # It waits for calls under way; a client that says nothing must not hold it up.
        closing = threading.Thread(target=server.shutdown, daemon=True)
        closing.start()
        closing.join(_STOP_S)
        if self._bind.path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._bind.path)


class _RoleMiddleware(flight.ServerMiddleware):  # type: ignore[misc]
    """Knows the role of a call."""

    def __init__(self, role: Role):
        self.role = role


class _RoleMiddlewareFactory(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Refuses calls without a token."""

    def __init__(self, role_of: Callable[[str], Role | None]):
        self._role_of = role_of

    def start_call(self, _info: Any, headers: Mapping[str, list[str]]) -> _RoleMiddleware:
        for name, values in headers.items():
            if name.lower() == "authorization":
                for value in values:
                    kind, _, token = value.partition(" ")
                    role = self._role_of(token.strip()) if kind.lower() == "bearer" else None
                    if role is not None:
                        return _RoleMiddleware(role)
        raise flight.FlightUnauthenticatedError(
            "UNAUTHENTICATED: expected authorization: Bearer TOKEN"
        )


class _FlightServer(flight.FlightServerBase):  # type: ignore[misc]
    """The calls."""

    def __init__(self, engine: Engine, limits: ServerLimits, location: str, **given: Any):
        self._engine = engine
        self._limits = limits
        self._calls = threading.BoundedSemaphore(limits.flights)
        self._follows = threading.BoundedSemaphore(limits.flights)
        self._taken = TakenPages()
        self.stopping = threading.Event()
        super().__init__(location, **given)

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Enqueue batches; each is acknowledged when it is durable."""
        _require(context, "operator")
        stream = _path(descriptor)
        _told(lambda: self._stream_schema(stream))
        _told(lambda: require_own_values(reader.schema))
        with _one_of(self._calls):
            self._put(context, stream, reader, writer)

    def _wait_while_behind(self, context: Any) -> None:
        """Acknowledge nothing while the engine has more to do than it should."""
        while _told(self._engine.backlog) >= self._limits.backlog:
            if self.stopping.wait(_POLL_S) or context.is_cancelled():
                raise flight.FlightUnavailableError("STOPPING: the batch was not taken")

    def _put(self, context: Any, stream: str, reader: Any, writer: Any) -> None:
        counted = {"accepted": 0, "dead": 0}
        for chunk in reader:
            position = _position(chunk.app_metadata)
            if chunk.data is not None:
                self._require_sound(chunk.data)
                self._wait_while_behind(context)
                receive = partial(self._engine.receive, stream, chunk.data, position=position)
                receipt = _told(receive)
                counted["accepted"] += receipt.accepted
                counted["dead"] += receipt.dead
            said = {**counted, "position": position}
            writer.write(pa.py_buffer(json.dumps(said).encode()))

    def do_get(self, context: Any, ticket: Any) -> Any:
        """What an output has, taken, or what it gives from now on, followed."""
        wanted = _Wanted.parse(ticket.ticket)
        _require(context, "operator" if wanted.take else "viewer")
        if wanted.take:
            most = self._limits.rows
            limit = most if wanted.limit is None else min(wanted.limit, most)
            with _one_of(self._calls):
                table = _told(lambda: self._take(wanted, limit))
            return flight.RecordBatchStream(table)
        schema = _told(lambda: self._output_schema(wanted.output))
        follower = _told(lambda: self._engine.follow(wanted.output))
        batches = self._followed(context, follower, wanted.limit)
        # A call that is cancelled before its first batch is asked for never enters the generator.
        weakref.finalize(batches, follower.close)
        return flight.GeneratorStream(schema, batches)

    def _take(self, wanted: _Wanted, limit: int) -> pa.Table:
        """What an output has; to who numbers its calls, what it may not have got before."""
        if wanted.reader is None or wanted.turn is None:
            return self._engine.dequeue(wanted.output, limit)
        return self._taken.take(
            wanted.output,
            wanted.reader,
            wanted.turn,
            lambda: self._engine.dequeue(wanted.output, limit),
        )

    def _followed(
        self, context: Any, follower: Follower, left: int | None
    ) -> Iterator[tuple[pa.RecordBatch, pa.Buffer]]:
        """Batches, each with the number of rows that were dropped since the one before."""
        told = 0
        with contextlib.closing(follower), _one_of(self._follows):
            while not self.stopping.is_set() and not context.is_cancelled():
                table, dropped = follower.next(_FOLLOW_S), follower.dropped
                if table is None and follower.closed:
                    return
                if table is None:
                    continue
                table = table if left is None else table.slice(0, left)
                for batch in table.to_batches(_ROWS):
                    yield batch, pa.py_buffer(json.dumps({"dropped": dropped - told}).encode())
                    told = dropped
                left = None if left is None else left - table.num_rows
                if left == 0:
                    return

    def _require_sound(self, batch: pa.RecordBatch) -> None:
        limits = self._limits
        _told(lambda: require_sound(batch, limits.rows, limits.body_bytes))

    def list_flights(self, context: Any, _criteria: bytes) -> Iterator[Any]:
        """Streams, whose path is their name, and outputs, below `outputs`."""
        _require(context, "viewer")
        for stream in _told(self._engine.list_entities)["streams"]:
            yield _told(partial(self._stream_info, stream))
        for output in _told(self._outputs):
            yield _told(partial(self._output_info, output))

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """One of them; `[NAME]` is a stream, else an output."""
        _require(context, "viewer")
        path = _parts(descriptor)
        if len(path) == 1 and path[0] in _told(self._engine.list_entities)["streams"]:
            return _told(lambda: self._stream_info(path[0]))
        return _told(lambda: self._output_info(path[-1]))

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """The schema of one of them."""
        return flight.SchemaResult(self.get_flight_info(context, descriptor).schema)

    def list_actions(self, _context: Any) -> list[Any]:
        return [flight.ActionType(name, text) for name, text in ACTIONS.items()]

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:
        """Statistics and descriptions."""
        _require(context, "viewer")
        if action.type == "stats":
            found = _told(self._engine.stats)
        elif action.type == "describe":
            name = action.body.to_pybytes().decode(errors="replace")
            found = _told(lambda: self._engine.describe(name))
            found = found if may(_role(context), "editor") else public_entity(found)
        else:
            raise flight.FlightServerError(
                str(
                    UsageError(
                        "BAD_CALL",
                        f"there is no action {action.type}; {list_existing(ACTIONS)}",
                        hint=closest(action.type, ACTIONS),
                    )
                )
            )
        yield flight.Result(pa.py_buffer(json.dumps(found, default=str).encode()))

    # ── what there is ──

    def _outputs(self) -> list[str]:
        found = self._engine.list_entities()
        return [*found["outputs"], *found["queries"]]

    def _stream_schema(self, stream: str) -> pa.Schema:
        streams = self._engine.network.streams
        if stream not in streams:
            raise UsageError(
                "UNKNOWN_STREAM",
                f"there is no stream {stream}; {list_existing(streams)}",
                hint=closest(stream, streams),
            )
        return streams[stream].schema_.arrow()

    def _output_schema(self, output: str) -> pa.Schema:
        return self._engine.dequeue(output, 0).schema

    def _stream_info(self, stream: str) -> Any:
        descriptor = flight.FlightDescriptor.for_path(stream)
        return flight.FlightInfo(self._stream_schema(stream), descriptor, [], -1, -1)

    def _output_info(self, output: str) -> Any:
        descriptor = flight.FlightDescriptor.for_path("outputs", output)
        ticket = flight.Ticket(json.dumps({"output": output, "take": True}).encode())
        endpoint = flight.FlightEndpoint(ticket, [])
        return flight.FlightInfo(self._output_schema(output), descriptor, [endpoint], -1, -1)


@dataclass(frozen=True)
class _Wanted:
    """What a ticket asks for."""

    output: str
    take: bool
    limit: int | None
    reader: str | None = None
    turn: int | None = None

    @staticmethod
    def parse(ticket: bytes) -> _Wanted:
        try:
            given = json.loads(ticket)
            wanted = _Wanted(
                given["output"],
                given.get("take", True),
                given.get("limit"),
                given.get("reader"),
                given.get("turn"),
            )
            named = wanted.reader is None or (
                isinstance(wanted.reader, str) and 0 < len(wanted.reader) <= _MOST_NAME
            )
            if (
                isinstance(wanted.output, str)
                and isinstance(wanted.take, bool)
                and all(map(_is_number, (wanted.limit, wanted.turn)))
                and named
                and (wanted.reader is None) == (wanted.turn is None)
                and (wanted.take or wanted.reader is None)
            ):
                return wanted
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        raise flight.FlightServerError(
            'BAD_CALL: expected a ticket such as {"output": "alerts", "take": true, "limit": 100}'
        )


def _is_number(value: Any) -> bool:
    """Whether it is a number from 0 on, or was left out."""
    return value is None or (
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
    )


@contextlib.contextmanager
def _one_of(calls: threading.BoundedSemaphore) -> Iterator[None]:
    """Refuse a call beyond those that may be under way; each holds a thread."""
    if not calls.acquire(blocking=False):
        raise flight.FlightUnavailableError("TOO_MANY_CALLS: come again later")
    try:
        yield
    finally:
        calls.release()


def _role(context: Any) -> Role:
    role: Role = context.get_middleware("role").role
    return role


def _require(context: Any, role: Role) -> None:
    has = _role(context)
    if not may(has, role):
        raise flight.FlightUnauthorizedError(f"FORBIDDEN: needs the role {role}, has {has}")


def _parts(descriptor: Any) -> list[str]:
    path = [part.decode(errors="replace") for part in descriptor.path or ()]
    if not path:
        raise flight.FlightServerError("BAD_CALL: expected a descriptor with the path of a stream")
    return path


def _path(descriptor: Any) -> str:
    path = _parts(descriptor)
    if len(path) != 1:
        raise flight.FlightServerError(f"BAD_CALL: expected the path of a stream, found {path}")
    return path[0]


def _position(metadata: Any) -> Any:
    """The position that comes with a batch: JSON with the key `position`, or none."""
    if metadata is None or metadata.size == 0:
        return None
    try:
        return json.loads(metadata.to_pybytes())["position"]
    except (ValueError, KeyError, TypeError):
        raise flight.FlightServerError(
            'BAD_CALL: expected metadata such as {"position": 17}'
        ) from None


def _told(call: Callable[[], T]) -> T:
    """The answer of the engine; its errors as Flight tells them, the code in front.

    Of errors that are not its own Flight would send the traceback.
    """
    try:
        return call()
    except AuroralError as error:
        raise flight.FlightServerError(str(error)) from None
    except pa.ArrowException as error:
        raise flight.FlightServerError(str(bad_body(str(error)))) from None
