"""Line feeds: plain TCP and Unix sockets whose lines become tuples of a stream.

Each connection cuts what it receives into blocks of whole lines. One task per feed gathers the
blocks of all connections for a moment and enqueues them together. While the engine is behind, or
a batch is under way, connections stop reading, so that senders wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from auroral.engine import Engine
from auroral.errors import AuroralError, RunError, UsageError, closest, list_existing
from auroral.io.batches import DecodedRows, EncodedBatch, JoinedBatch
from auroral.io.encoded import CsvText, JsonLinesText
from auroral.io.fit import match_columns, misplaced
from auroral.io.readers import lexer
from auroral.network.types import Schema
from auroral.server.addresses import FeedAddress
from auroral.server.converters import FormatConverter, converter, names
from auroral.server.tokens import Role, may

FORMATS = ("ndjson", "csv")
GATHER_S = 0.02
"""How long blocks are gathered before they are enqueued."""
BATCH_BYTES = 1 << 20
"""Blocks of this size together are enqueued at once."""
PENDING_BYTES = 8 << 20
"""Connections stop reading while so much waits to be enqueued."""
LINE_BYTES = 1 << 20
"""A longer line is a dead letter."""
BACKLOG = 500_000
"""Nothing is enqueued while the slowest box has this many moments to go."""
CONNECTIONS = 256
_READ_BYTES = 256 << 10
_AUTH_S = 10.0
_AUTH_BYTES = 1024
_POLL_S = 0.02
_STOP_S = 5.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LinesOption:
    """What `--lines` says: the stream, where to listen, and the format of the lines."""

    stream: str
    address: FeedAddress
    format: str = "ndjson"

    @staticmethod
    def parse(text: str) -> LinesOption:
        """Read `stream=HOST:PORT|unix:PATH[,format]`.

        >>> LinesOption.parse("reports=127.0.0.1:7000,csv").format
        'csv'
        """
        stream, found, rest = text.partition("=")
        if not found or not stream:
            raise UsageError(
                "BAD_OPTION",
                f"expected stream=HOST:PORT or stream=unix:PATH, found {text!r}",
                where="--lines",
            )
        place, comma, format = rest.rpartition(",")
        if not comma:
            place, format = rest, "ndjson"
        known = (*FORMATS, *names())
        if format not in known:
            raise UsageError(
                "UNKNOWN_CONVERTER",
                f"there is no format {format} for lines; {list_existing(known)}",
                where="--lines",
                hint=closest(format, known),
            )
        return LinesOption(stream, FeedAddress.parse(place, "--lines"), format)

    def require_stream(self, streams: Collection[str]) -> None:
        """Refuse a stream that there is not."""
        if self.stream not in streams:
            raise UsageError(
                "UNKNOWN_STREAM",
                f"there is no stream {self.stream}; {list_existing(streams)}",
                where="--lines",
                hint=closest(self.stream, streams),
            )


@dataclass(frozen=True)
class LineLimits:
    """What bounds the memory of a feed, and its patience."""

    line_bytes: int = LINE_BYTES
    pending_bytes: int = PENDING_BYTES
    batch_bytes: int = BATCH_BYTES
    backlog: int = BACKLOG
    connections: int = CONNECTIONS
    gather_s: float = GATHER_S
    auth_s: float = _AUTH_S


class LineFeed:
    """Serves one stream's lines; `start` binds it, `address` says where.

    On TCP the first line must be `AUTH TOKEN`, with the token of an operator or editor. A Unix
    socket belongs to its owner alone and needs none.
    """

    def __init__(
        self,
        engine: Engine,
        option: LinesOption,
        role_of: Callable[[str], Role | None],
        *,
        insecure: bool = False,
        limits: LineLimits | None = None,
    ):
        option.address.require_safe("--lines", tls=False, insecure=insecure)
        self._engine = engine
        self._option = option
        self._role_of = role_of
        self._limits = limits or LineLimits()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._bound = ""
        self._serving: _Serving | None = None

    def start(self) -> None:
        """Bind and begin to serve, in a thread of its own."""
        self._option.require_stream(self._engine.network.streams)
        ready = threading.Event()
        failed: list[OSError] = []
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(ready, failed)),
            daemon=True,
            name=f"auroral-lines-{self._option.stream}",
        )
        self._thread.start()
        ready.wait()
        if failed:
            raise RunError(
                "CANNOT_BIND", f"cannot bind {self._option.address}: {failed[0]}", where="--lines"
            )

    @property
    def address(self) -> str:
        """Where senders connect to."""
        return f"{self._option.stream}={self._bound},{self._option.format}"

    def statistics(self) -> dict[str, int]:
        """Connections now, bytes and tuples so far, refused connections, bytes that were lost."""
        serving = self._serving
        return vars(serving.counts).copy() if serving else {}

    def stop(self) -> None:
        """Close the connections; what they have brought in whole lines is enqueued."""
        loop, serving = self._loop, self._serving
        if loop is not None and serving is not None and self._thread is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(serving.stopping.set)
            self._thread.join(_STOP_S)
        if self._option.address.path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._option.address.path)

    async def _serve(self, ready: threading.Event, failed: list[OSError]) -> None:
        self._loop = asyncio.get_running_loop()
        serving = _Serving(self._engine, self._option, self._role_of, self._limits)
        bind = self._option.address
        try:
            if bind.path is not None:
                bind.clear_path()
                with bind.private() as path:
                    server: asyncio.Server = await asyncio.start_unix_server(
                        serving.connected, path
                    )
                self._bound = str(bind)
            else:
                server = await asyncio.start_server(serving.connected, bind.host, bind.port)
                port = server.sockets[0].getsockname()[1]
                self._bound = str(FeedAddress(bind.host, port))
        except OSError as error:
            failed.append(error)
            return
        except AuroralError as error:
            failed.append(OSError(error.message))
            return
        finally:
            self._serving = serving
            ready.set()
        async with server:
            await serving.run()


# ── formats ──


class _LineDecoder(Protocol):
    """Cuts and wraps what one connection brings."""

    def cut(self, data: bytes) -> int:
        """How many bytes are whole records."""

    def batch(self, data: bytes, line: int, place: str) -> EncodedBatch | None:
        """What to enqueue of whole records; None if they are no data."""

    takes_rest: bool
    """Whether a last line without its end can be told from one that was cut off."""


class _NdjsonLines:
    takes_rest = True

    def cut(self, data: bytes) -> int:
        return data.rfind(b"\n") + 1

    def batch(self, data: bytes, line: int, place: str) -> EncodedBatch:
        return JsonLinesText(data, place, line)


class _CsvLines:
    """The first record is a header if its fields are the stream's, else data in their order."""

    takes_rest = False

    def __init__(self, schema: Callable[[], Schema]):
        self._schema = schema
        self._names: list[str] | None = None

    def cut(self, data: bytes) -> int:
        return lexer.cut(data, False)[0]

    def batch(self, data: bytes, line: int, place: str) -> EncodedBatch | None:
        if self._names is None:
            first = next((r for r in lexer.records(data) if r.fields != [None]), None)
            if first is None:
                return None
            schema = self._schema()
            found = [(f or b"").decode(errors="replace").strip() for f in first.fields]
            found[0] = found[0].removeprefix("\ufeff")
            self._names = list(schema.names)
            if misplaced(found, schema, match_columns(found, schema), "reject") is None:
                self._names = found
                line += lexer.lines(data[: first.after])
                data = data[first.after :]
        return CsvText(data, place, line, self._names) if data else None


class _ConvertedLines:
    takes_rest = False

    def __init__(self, converter: FormatConverter, schema: Callable[[], Schema]):
        self._converter = converter
        self._schema = schema

    def cut(self, data: bytes) -> int:
        return self._converter.cut(data)

    def batch(self, data: bytes, line: int, place: str) -> EncodedBatch:
        return self._converter.decode_block(data, self._schema()).at(place, line)


# ── connections ──


@dataclass
class _FeedCounts:
    """What a feed has seen."""

    connections: int = 0
    refused: int = 0
    bytes: int = 0
    tuples: int = 0
    dead: int = 0
    lost_bytes: int = 0
    """Received and not enqueued, because that failed or the connection was cut."""


@dataclass
class _Pending:
    """Blocks that wait to be enqueued."""

    batches: list[EncodedBatch] = field(default_factory=list)
    bytes: int = 0

    def take(self) -> tuple[list[EncodedBatch], int]:
        found, self.batches, self.bytes = (self.batches, self.bytes), [], 0
        return found


class _Serving:
    """The tasks of one feed; all run in its event loop."""

    def __init__(
        self,
        engine: Engine,
        option: LinesOption,
        role_of: Callable[[str], Role | None],
        limits: LineLimits,
    ):
        self._engine = engine
        self._option = option
        self._role_of = role_of
        self._limits = limits
        self._pending = _Pending()
        self._arrived = asyncio.Event()
        self._full = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.stopping = asyncio.Event()
        self.counts = _FeedCounts()

    async def run(self) -> None:
        """Enqueue until the feed is stopped, then what is left."""
        flusher = asyncio.create_task(self._flush_always())
        await self.stopping.wait()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._arrived.set()
        self._full.set()
        await flusher

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        self.counts.connections += 1
        try:
            if self.counts.connections > self._limits.connections:
                self.counts.refused += 1
                await _say(writer, "ERR TOO_MANY_CONNECTIONS")
            elif await self._is_allowed(reader, writer):
                await self._read(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        except Exception as error:
            await _say(writer, f"ERR {self._told(error)}")
        finally:
            self.counts.connections -= 1
            del self._connections[task]
            writer.close()

    async def _is_allowed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if self._option.address.path is not None:
            return True
        try:
            line = await asyncio.wait_for(reader.readuntil(b"\n"), self._limits.auth_s)
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            line = b""
        word, _, token = line.decode(errors="replace").strip().partition(" ")
        role = None
        if word == "AUTH" and len(token) <= _AUTH_BYTES:
            role = self._role_of(token.strip())
        if role is None:
            self.counts.refused += 1
            await _say(writer, "ERR UNAUTHENTICATED expected the line AUTH TOKEN first")
        elif not may(role, "operator"):
            self.counts.refused += 1
            await _say(writer, f"ERR FORBIDDEN needs the role operator, has {role}")
        else:
            await _say(writer, "OK")
        return role is not None and may(role, "operator")

    def _decoder(self) -> _LineDecoder:
        if self._option.format == "ndjson":
            return _NdjsonLines()
        if self._option.format == "csv":
            return _CsvLines(self._schema)
        return _ConvertedLines(converter(self._option.format), self._schema)

    def _schema(self) -> Schema:
        streams = self._engine.network.streams
        if self._option.stream not in streams:
            problem = f"there is no stream {self._option.stream} any more; {list_existing(streams)}"
            raise UsageError("UNKNOWN_STREAM", problem)
        return streams[self._option.stream].schema_

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername") or "a Unix socket"
        place = f"lines from {peer[0]}:{peer[1]}" if isinstance(peer, tuple) else f"lines {peer}"
        decoder = self._decoder()
        held, block, line, skipping = b"", b"", 1, False
        try:
            while data := await reader.read(_READ_BYTES):
                self.counts.bytes += len(data)
                if skipping:
                    end = data.find(b"\n") + 1
                    if not end:
                        continue
                    data, skipping, line = data[end:], False, line + 1
                held += data
                end = decoder.cut(held)
                block, held = held[:end], held[end:]
                if block:
                    batch = decoder.batch(block, line, place)
                    line, size, block = line + lexer.lines(block), len(block), b""
                    await self._put(batch, size)
                if len(held) > self._limits.line_bytes:
                    why = f"longer than {self._limits.line_bytes} bytes"
                    # A quoted field may span lines: what follows its first line is looked at again.
                    end = held.find(b"\n") + 1
                    block, held = (held[:end], held[end:]) if end else (held, b"")
                    skipping, dead = not end, _dead(block, why, line, place)
                    line, size, block = line + (1 if end else 0), len(block), b""
                    await self._put(dead, size)
            if held.strip():
                why = "the connection ended before the end of the line"
                whole = decoder.takes_rest
                rest = decoder.batch(held, line, place) if whole else _dead(held, why, line, place)
                size, held = len(held), b""
                await self._put(rest, size)
        except BaseException:
            self.counts.lost_bytes += len(block) + len(held)
            raise

    async def _put(self, batch: EncodedBatch | None, size: int) -> None:
        """Let a block be enqueued; waits while too much waits."""
        if batch is None:
            return
        try:
            while self._pending.bytes >= self._limits.pending_bytes:
                self._room.clear()
                await self._room.wait()
        finally:  # also of a connection that is cut meanwhile
            self._pending.batches.append(batch)
            self._pending.bytes += size
            self._arrived.set()
            if self._pending.bytes >= self._limits.batch_bytes:
                self._full.set()

    # ── enqueuing ──

    async def _flush_always(self) -> None:
        while True:
            await self._arrived.wait()
            if not self.stopping.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._full.wait(), self._limits.gather_s)
                await self._until_kept_up()
            batches, size = self._pending.take()
            self._arrived.clear()
            self._full.clear()
            self._room.set()
            if batches:
                await self._enqueue(batches, size)
            elif self.stopping.is_set():
                return
            if self.stopping.is_set():
                self._arrived.set()

    async def _until_kept_up(self) -> None:
        """Wait while the engine has more to do than it should."""
        while not self.stopping.is_set() and self._is_behind():
            await asyncio.sleep(_POLL_S)

    def _is_behind(self) -> bool:
        try:
            return self._engine.backlog() >= self._limits.backlog
        except Exception:  # enqueuing fails as well, and tells why
            return False

    async def _enqueue(self, batches: Sequence[EncodedBatch], size: int) -> None:
        """Enqueue blocks; if that fails, count them and tell all connections, which are closed."""
        batch = batches[0] if len(batches) == 1 else JoinedBatch(tuple(batches))
        try:
            receipt = await asyncio.to_thread(self._engine.receive, self._option.stream, batch)
        except Exception as error:
            self.counts.lost_bytes += size
            told = self._told(error)
            for task, writer in self._connections.items():
                writer.write(f"ERR {told}\n".encode())
                task.cancel()
            return
        self.counts.tuples += receipt.accepted
        self.counts.dead += receipt.dead

    def _told(self, error: Exception) -> str:
        """What a sender is told of a failure; the log has it, too."""
        stream = self._option.stream
        if isinstance(error, AuroralError):
            _log.error("lines of %s cannot be enqueued: %s", stream, error)
            return " ".join(str(error).split())
        _log.error("lines of %s cannot be enqueued", stream, exc_info=error)
        return "INTERNAL the server failed; its log says why"


def _dead(text: bytes, reason: str, line: int, place: str) -> DecodedRows:
    return DecodedRows([None], {0: reason}, [text], [line], place)


async def _say(writer: asyncio.StreamWriter, text: str) -> None:
    with contextlib.suppress(ConnectionError):
        writer.write(f"{text}\n".encode())
        await writer.drain()
