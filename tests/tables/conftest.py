"""One PostgreSQL for all tests of a process, started by the first that needs it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from .server import PostgresServer, binaries


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed")
    programs = binaries()
    if programs is None:
        pytest.skip("there is no PostgreSQL: run scripts/postgres.sh")
    server = PostgresServer(tmp_path_factory.mktemp("postgres"), programs)
    server.start()
    try:
        yield server
    finally:
        server.stop()
