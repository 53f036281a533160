"""Following an output over a WebSocket, without taking its results."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

import pyarrow as pa
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from auroral.client.rows import typed
from auroral.client.transport import API, Transport, error_of, named, told, unreachable
from auroral.errors import RunError

ROW_BYTES = 64 << 20


class RemoteFollower:
    """What an output gives from a moment on; the oldest results go if the reader is slow.

    It is an iterator over tables that ends with the connection, and a context manager.
    """

    def __init__(self, server: Transport, output: str):
        self.output = output
        self._url = server.url
        self.dropped = 0
        """How many rows went because the reader was slow."""
        self._connection = open_socket(server, f"outputs/{named(output)}/live")
        try:
            self._message(server.timeout_s)  # the first says that it has begun
        except BaseException:
            self.close()
            raise

    def next(self, timeout_s: float | None = None) -> pa.Table | None:
        """What has come since the last call; None if nothing came in so many seconds."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            try:
                found = self._message(left)
            except TimeoutError:
                return None
            if found is not None:
                return found

    def _message(self, timeout_s: float | None) -> pa.Table | None:
        """The rows of the next message; None if it has none."""
        try:
            message = json.loads(self._connection.recv(timeout_s))
        except ConnectionClosed as error:
            raise _closed(error, self._url) from None
        if message.get("type") == "error":
            raise error_of(message["problem"])
        self.dropped += int(message.get("dropped", 0))
        return _table(message) if message.get("rows") else None

    def __iter__(self) -> Iterator[pa.Table]:
        while True:
            try:
                found = self.next()
            except RunError as error:
                if error.code == "DISCONNECTED":
                    return
                raise
            if found is not None:
                yield found

    def close(self) -> None:
        """Follow no more."""
        self._connection.close()

    def __enter__(self) -> RemoteFollower:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _table(message: Mapping[str, Any]) -> pa.Table:
    """The rows of a message, of the types that it tells."""
    declared = [(field["name"], field["type"]) for field in message["fields"]]
    return typed([[row[name] for name, _ in declared] for row in message["rows"]], declared)


def open_socket(server: Transport, path: str) -> ClientConnection:
    """A WebSocket of the server."""
    url = f"{server.url.replace('http', 'ws', 1)}{API}/{path}"
    try:
        connection: ClientConnection = connect(
            url,
            additional_headers={"Authorization": f"Bearer {server.token}"},
            ssl=server.tls,
            open_timeout=server.timeout_s,
            max_size=ROW_BYTES,
        ).__enter__()  # who follows closes it
        return connection
    except InvalidStatus as error:
        raise told(error.response.status_code, bytes(error.response.body or b""), url) from None
    except (OSError, TimeoutError, InvalidHandshake) as error:
        raise unreachable(server.url, error) from None


def _closed(error: ConnectionClosed, url: str) -> RunError:
    reason = error.rcvd.reason if error.rcvd is not None else ""
    return RunError("DISCONNECTED", reason or "the server closed the connection", where=url)
