"""A small network that feeds are tried on, in this process, and its tokens."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import auroral as au
from auroral.client import Client
from auroral.engine import Engine
from auroral.server.app import create_app
from auroral.server.running import HttpServer
from auroral.server.service import EngineService
from auroral.server.settings import ServerSettings
from auroral.server.tokens import AccessTokens, Role
from tests.conformance.sparkless import InProcessExecutor, make_engine

__all__ = ["InProcessExecutor", "Served", "hot_network", "role_of", "running", "served"]

TOKENS: dict[str, Role] = {"view": "viewer", "operate": "operator", "edit": "editor"}


def role_of(token: str) -> Role | None:
    return TOKENS.get(token)


def hot_network() -> au.Network:
    """Reports of positions; those above 30 are hot."""
    network = au.Network("feeding")
    reports = network.stream("reports", schema="sid int, pos double, name string")
    network.output("hot", reports.filter("pos > 30"))
    return network


@contextmanager
def running(**options: Any) -> Iterator[Engine]:
    """The network with threads of its own, as behind a server."""
    with make_engine(hot_network(), background=True, **options) as engine:
        yield engine


class Served:
    """A server with an engine in this process, listening on a port of its own."""

    def __init__(self, engine: Engine, directory: Path, **settings: Any):
        self.engine = engine
        self.tokens = AccessTokens.made()
        self.service = EngineService(engine, ServerSettings(**settings))
        self._http = HttpServer(create_app(self.service, self.tokens), "127.0.0.1", 0)
        self._http.start()
        self.url = self._http.url
        self.directory = directory

    def client(self, role: Role = "editor", **given: Any) -> Client:
        return Client(self.url, self.tokens[role], **given)

    def stop(self) -> None:
        self._http.stop()


@contextmanager
def served(network: au.Network | None = None, **options: Any) -> Iterator[Served]:
    """A network behind a server."""
    with (
        tempfile.TemporaryDirectory() as directory,
        make_engine(network or hot_network(), background=True, **options) as engine,
    ):
        found = Served(engine, Path(directory))
        try:
            yield found
        finally:
            found.stop()
