"""Listening: uvicorn in a thread of its own, on a socket that is bound before anything is said."""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from auroral.errors import RunError, UsageError
from auroral.server.connections import bounded_by
from auroral.server.guards import LOOPBACK
from auroral.server.settings import ServerLimits

_BACKLOG = 512
_FRAME_BYTES = 1 << 20
_FINISH_S = 10
_HEAD_BYTES = 256 << 10
"""Of the headers of a request and its address, in which a condition may be encoded."""
_KERNEL_BYTES = 256 << 10


@dataclass(frozen=True)
class TlsFiles:
    """The certificate and key of a server, in PEM."""

    certificate: Path
    key: Path


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach a host.

    >>> is_loopback("127.0.0.2"), is_loopback("[::1]"), is_loopback("127.0.0.1.example")
    (True, True, False)
    """
    name = host.strip("[]").lower()
    try:
        return name in LOOPBACK or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def require_safe(host: str, tls: TlsFiles | None, *, insecure: bool) -> None:
    """Refuse to listen to other machines without TLS, unless somebody insists."""
    if not is_loopback(host) and tls is None and not insecure:
        raise UsageError(
            "INSECURE_BIND",
            f"{host} is reached by other machines, and tokens would go in the clear",
            where="--host",
            hint="give --tls-cert and --tls-key; or --insecure, if something before it has TLS",
        )


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that has the port, so that nobody else gets it; it does not listen yet."""
    name = host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    # asyncio sends small answers at once only if the protocol is named.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((name, port))
    except OSError as error:
        made.close()
        raise _cannot_listen(f"{name}:{port}", error) from None
    return made


def _cannot_listen(place: str, error: OSError) -> RunError:
    problem = f"cannot listen on {place}: {error.strerror or error}"
    hint = "another server may run there; give another --port, or 0 for any"
    return RunError("CANNOT_BIND", problem, where="--port", hint=hint)


class HttpServer:
    """Serves an application until it is stopped; `url` says where."""

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        tls: TlsFiles | None = None,
        *,
        bound: socket.socket | None = None,
        limits: ServerLimits | None = None,
    ):
        """With `bound` it listens on a socket that has its port already."""
        self._host = host.strip("[]")
        self._tls = tls
        self._socket = bound or bound_socket(host, port)
        # Connections inherit it: what a client does not read waits here, where it can be seen.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BYTES)
        try:
            self._socket.listen(_BACKLOG)
        except OSError as error:  # another server was bound there at the same time, and is faster
            refused = _cannot_listen(self.url, error)
            self._socket.close()
            raise refused from None
        config = uvicorn.Config(
            app,
            http=bounded_by(limits or ServerLimits()),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            proxy_headers=False,
            ws_max_size=_FRAME_BYTES,
            h11_max_incomplete_event_size=_HEAD_BYTES,
            timeout_graceful_shutdown=_FINISH_S,
            ssl_certfile=None if tls is None else tls.certificate,
            ssl_keyfile=None if tls is None else tls.key,
        )
        self._server = _NotifyingServer(config)
        self._thread = threading.Thread(target=self._serve, name="auroral-http", daemon=True)
        logging.getLogger("uvicorn.error").addFilter(_is_worth_telling)
        self._failure: BaseException | None = None

    @property
    def url(self) -> str:
        """The address of the page."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{host}:{self._socket.getsockname()[1]}"

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        except BaseException as error:
            self._failure = error
        finally:
            self._server.ready.set()

    def start(self) -> None:
        """Begin to accept; returns when it does."""
        self._thread.start()
        self._server.ready.wait()
        if not self._server.started:
            self._socket.close()
            raise RunError(
                "CANNOT_SERVE", f"the server did not start: {self._failure or 'see its log'}"
            )

    def stop(self) -> None:
        """Accept nothing more, finish the requests under way, close WebSockets."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._socket.close()

    @property
    def alive(self) -> bool:
        """Whether it serves."""
        return self._thread.is_alive()


def _is_worth_telling(record: logging.LogRecord) -> bool:
    """Leave out what uvicorn says of WebSockets that were refused by an answer."""
    return "without completing handshake" not in record.getMessage()


class _NotifyingServer(uvicorn.Server):
    """Says when it accepts connections."""

    def __init__(self, config: uvicorn.Config):
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()
