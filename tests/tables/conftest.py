"""One PostgreSQL for all tests of a process, started by the first that needs it."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.postgres_server import PostgresServer, binaries


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed")
    programs = binaries()
    if programs is None:
        pytest.skip("there is no PostgreSQL: run scripts/postgres.sh")
    # Not among pytest's directories, which another run may remove while the server runs.
    directory = Path(tempfile.mkdtemp(prefix="auroral-postgres-"))
    try:
        server = PostgresServer(directory, programs)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
