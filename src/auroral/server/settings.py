"""What a server may be told: limits, and what networks from the wire may name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ServerLimits:
    """How much one server takes on; beyond that it says no instead of growing."""

    body_bytes: int = 64 << 20
    """The largest body of a request."""
    total_body_bytes: int = 256 << 20
    """What the bodies of all requests under way may have together."""
    body_s: float = 60.0
    """How long a client may take to send a body."""
    backlog: int = 5_000_000
    """Who enqueues waits while the slowest box has this many moments to go."""
    rows: int = 1_000_000
    """The most rows of one request."""
    answer_rows: int = 100_000
    """The most rows of one answer; a table with more is marked `truncated`."""
    connections: int = 512
    """Connections of HTTP and WebSockets at the same time; each takes one of the files that a
    process may have open, of which there are often 1,024."""
    header_s: float = 15.0
    """How long a client may take for the headers of a request, also of the first."""
    total_answer_bytes: int = 256 << 20
    """What the answers under way may have together that their clients have not taken yet."""
    requests: int = 256
    """Requests at the same time."""
    flights: int = 64
    """Flight calls that put or take at the same time, and as many who follow; each has a thread."""
    sockets: int = 64
    """WebSockets at the same time."""
    request_s: float = 60.0
    """After so many seconds a request is answered with TIMEOUT; what it began goes on."""
    slow_socket_s: float = 15.0
    """A client that takes nothing of a frame or an answer for so long is disconnected."""
    workers: int = 16
    """Threads that call the engine for those who change or feed it; as many for those who look."""
    selects: int = 2
    """SELECTs over what is kept at the same time; Spark runs them beside the network."""
    waits: int = 16
    """Calls at the same time that only wait, such as drain."""
    check_bytes: int = 2 << 20
    """The largest network that is checked without being deployed."""
    stop_s: float = 5.0
    """How long the end of the server waits for calls under way."""


@dataclass(frozen=True)
class ServerSettings:
    """How a server behaves besides its limits."""

    limits: ServerLimits = field(default_factory=ServerLimits)
    hosts: Sequence[str] | None = None
    """Names by which requests may address the server; None: any."""
    modules: frozenset[str] = frozenset()
    """Modules of Python functions that networks from the wire may name."""
    roots: Sequence[Path] = ()
    """Directories below which networks from the wire may read and write files."""
    protected: Sequence[Path] = ()
    """Files of the server that networks from the wire may not use wherever they are."""
    static: Path | None = None
    """The built studio; None: the one in the package."""
    master: str = "local[*]"
    """The Spark master, for `GET /server`."""
