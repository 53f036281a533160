"""Attaching to a network that another process runs: a socket in its state directory.

A request is one line of JSON. The answer is one line of JSON, which says what went wrong if
something did, and then the results as an Arrow stream. Only the owner of the directory may use it.
"""

from __future__ import annotations

import json
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from auroral.disk import PRIVATE_FILE
from auroral.errors import AuroralError, RunError, UsageError

SOCKET = "attach.sock"
_LOOK_S = 0.2
_LONGEST = 1 << 20
_BACKLOG = 8


class LiveQuery(Protocol):
    """A query that was attached for a while."""

    def take(self) -> pa.Table:
        """What has come since the last call."""
        ...

    @property
    def has_caught_up(self) -> bool:
        """Whether everything before the moment of attaching is there."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Wait until something has happened."""
        ...

    def detach(self) -> None:
        """Leave nothing of it."""
        ...


class AttachServer:
    """Answers requests, each in a thread of its own, as long as the engine runs."""

    def __init__(self, directory: Path, attach: Callable[[str, str, bool], LiveQuery]):
        """`attach` attaches SQL to a point, and knows whether what flows is wanted, too."""
        self._attach = attach
        self._directory = directory
        self._stopping = threading.Event()
        path = directory / SOCKET
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _short(directory) as short:
            self._socket.bind(f"{short}/{SOCKET}")
        path.chmod(PRIVATE_FILE)  # nobody else can reach it before: the directory is private
        self._socket.listen(_BACKLOG)
        self._threads: list[threading.Thread] = []
        self._begin(self._serve)

    def _begin(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, name="auroral-attach", daemon=True)
        self._threads = [t for t in self._threads if t.is_alive()] + [thread]
        thread.start()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            if _is_readable(self._socket, _LOOK_S):
                client, _ = self._socket.accept()
                self._begin(self._answer, client)

    def _answer(self, client: socket.socket) -> None:
        with suppress(OSError), closing(client), client.makefile("rwb") as file:
            try:
                asked = json.loads(file.readline(_LONGEST))
                point, sql = str(asked["point"]), str(asked["sql"])
                follow = bool(asked.get("follow"))
                query = self._attach(point, sql, follow)
            except (AuroralError, ValueError, KeyError, TypeError) as error:
                _send(file, {"error": _told(error)})
                return
            try:
                self._stream(client, file, query, follow=follow)
            finally:
                with suppress(AuroralError):
                    query.detach()

    def _stream(self, client: socket.socket, file: Any, query: LiveQuery, *, follow: bool) -> None:
        table = query.take()
        _send(file, {"ok": True})
        with pa.ipc.new_stream(file, table.schema) as stream:
            # An empty batch too: who asked knows then that the query is attached.
            stream.write_table(table) if table.num_rows else stream.write_batch(_empty(table))
            file.flush()
            while not self._stopping.is_set():
                done = query.has_caught_up
                try:
                    table = query.take()
                except AuroralError:
                    return  # the stream ends; why is told by who runs the network
                if table.num_rows:
                    stream.write_table(table)
                    file.flush()
                elif (done and not follow) or _has_gone(client):
                    return
                else:
                    query.wait(_LOOK_S)

    def close(self) -> None:
        """End, and let nobody connect any more."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._socket.close()
        (self._directory / SOCKET).unlink(missing_ok=True)


def is_served(state: Path) -> bool:
    """Whether a process that runs the network in a state directory can be asked."""
    return (state / SOCKET).exists() and _connected(state) is not None


def ask(state: Path, point: str, sql: str, *, follow: bool) -> Iterator[pa.Table]:
    """What a query gives that another process attaches; an empty table first."""
    client = _connected(state)
    if client is None:
        raise UsageError("NOT_STARTED", "no process runs the network of this state")
    with closing(client), client.makefile("rwb") as file:
        _send(file, {"point": point, "sql": sql, "follow": follow})
        answer = json.loads(file.readline(_LONGEST) or "{}")
        if "error" in answer:
            raise UsageError(**answer["error"])
        if not answer.get("ok"):
            raise RunError("NOT_STARTED", "the process that runs the network has ended")
        try:
            with pa.ipc.open_stream(file) as stream:
                yield stream.schema.empty_table()
                for batch in stream:
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            raise RunError("NOT_STARTED", f"the process ended meanwhile: {error}") from None


def _connected(state: Path) -> socket.socket | None:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(state) as short:
            client.connect(f"{short}/{SOCKET}")
    except OSError:
        client.close()
        return None
    return client


@contextmanager
def _short(directory: Path) -> Iterator[str]:
    """A path of a directory that is short enough for the address of a socket."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _send(file: Any, message: dict[str, Any]) -> None:
    file.write(json.dumps(message).encode() + b"\n")
    file.flush()


def _told(error: Exception) -> dict[str, Any]:
    if isinstance(error, AuroralError):
        return {
            "code": error.code,
            "message": error.message,
            "where": error.where,
            "hint": error.hint,
        }
    return {"code": "BAD_CALL", "message": f"a request that makes no sense: {error!r}"}


def _empty(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=table.schema)


def _has_gone(client: socket.socket) -> bool:
    """Whether who asked has closed the connection."""
    return _is_readable(client, 0) and not client.recv(1, socket.MSG_PEEK)


def _is_readable(one: socket.socket, timeout_s: float) -> bool:
    """Whether something can be read within some seconds; descriptors may have any number."""
    poll = select.poll()
    poll.register(one, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
