"""A server with an engine in this process, on a port of its own, and a client that asks it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from auroral.engine import Engine
from auroral.network.network import Network
from auroral.server.app import create_app
from auroral.server.network_file import NetworkFile
from auroral.server.running import HttpServer
from auroral.server.service import EngineService
from auroral.server.settings import ServerLimits, ServerSettings
from auroral.server.tokens import AccessTokens, Role
from tests.conformance.sparkless import make_engine

PLANT: dict[str, Any] = {
    "network": "plant",
    "streams": {
        "readings": {
            "schema": {"machine": "string", "at": "int", "celsius": "double"},
            "progress": {"on": "at", "ordered": True},
        }
    },
    "tables": {"seen": {"schema": {"machine": "string", "n": "bigint"}, "key": ["machine"]}},
    "boxes": {
        "hot": {"box": "filter", "input": "readings", "where": "celsius > 97"},
        "tens": {
            "box": "aggregate",
            "input": "readings",
            "order": {"on": "at"},
            "window": {"size": 10},
            "compute": {"n": "count(*)"},
        },
        "count": {
            "box": "latch",
            "input": "readings",
            "by": ["machine"],
            "compute": {"n": "count(*)"},
            "table": "seen",
        },
    },
    "queries": {"mild": "SELECT machine FROM readings WHERE celsius < 10"},
    "connection_points": {"recent": {"on": "readings", "keep": {"rows": 1000}, "key": "machine"}},
    "outputs": {
        "alerts": {"from": "hot", "qos": {"latency": [[0, 1], [2, 1], [10, 0]]}},
        "means": {"from": "tens", "qos": {"latency": [[0, 1], [30, 1], [90, 0]]}},
    },
}
READINGS = [
    {"machine": "press", "at": 1, "celsius": 99.5},
    {"machine": "lathe", "at": 2, "celsius": 60.0},
    {"machine": "mill", "at": 13, "celsius": 98.0},
]


class Site:
    """A server under test."""

    def __init__(self, engine: Engine, service: EngineService, http: HttpServer, tokens: Any):
        self.engine = engine
        self.service = service
        self.http = http
        self.tokens: AccessTokens = tokens
        self.asking = httpx.Client(base_url=http.url, timeout=30)

    def ask(
        self, method: str, path: str, *, role: Role | None = "editor", **given: Any
    ) -> httpx.Response:
        """The answer to a request; paths that do not begin with `/` are below the API's."""
        headers = dict(given.pop("headers", {}))
        if role is not None:
            headers["Authorization"] = f"Bearer {self.tokens[role]}"
        where = path if path.startswith("/") else f"/api/v1/{path}"
        return self.asking.request(method, where, headers=headers, **given)

    def get(self, path: str, **given: Any) -> Any:
        """The JSON of an answer that must be good."""
        found = self.ask("GET", path, **given)
        assert found.status_code == 200, found.text
        return found.json()

    def socket(
        self, path: str, role: Role = "viewer", **given: Any
    ) -> AbstractContextManager[ClientConnection]:
        """A WebSocket as a page opens it, for the length of a block."""
        where = f"{self.http.url.replace('http', 'ws')}/api/v1/{path}"
        offered: Any = ["auroral", f"bearer.{self.tokens[role]}"]
        opened: AbstractContextManager[ClientConnection] = connect(
            where, subprotocols=offered, **given
        )
        return opened


@contextmanager
def site(
    document: dict[str, Any] | None = None,
    *,
    file: Path | None = None,
    state: Path | None = None,
    limits: ServerLimits | None = None,
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> Iterator[Site]:
    """A network behind a server."""
    directory = None if file is None else file.parent
    network = Network.parse(PLANT if document is None else document, directory=directory)
    with make_engine(network, background=True, state=state, **options) as engine:
        given = ServerSettings(limits or ServerLimits(), **(settings or {}))
        kept = None if file is None else NetworkFile(file)
        service = EngineService(engine, given, file=kept, state=state)
        tokens = AccessTokens.made()
        http = HttpServer(create_app(service, tokens), "127.0.0.1", 0, limits=given.limits)
        http.start()
        found = Site(engine, service, http, tokens)
        try:
            yield found
        finally:
            found.asking.close()
            http.stop()
            service.audit.close()
