"""A real PostgreSQL for tests and benchmarks: a cluster of its own in a temporary directory."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

PLACES = ("/usr/lib/postgresql", "/usr/pgsql-*", "/opt/homebrew/opt", "/usr/local/opt")


def binaries() -> Path | None:
    """Where the programs of the newest PostgreSQL are that can be had."""
    found = shutil.which("initdb")
    if found is not None and shutil.which("pg_ctl") is not None:
        return Path(found).parent
    candidates = [
        path.parent
        for place in PLACES
        for root in Path("/").glob(place.lstrip("/"))
        for path in root.glob("**/bin/initdb")
    ]
    return max(candidates, key=lambda path: path.parent.name, default=None)


class PostgresServer:
    """Keeps its data over restarts; the database refuses root, so another user runs it then."""

    def __init__(self, directory: Path, programs: Path, *, power: bool = False):
        """Without `power` commits need not be on the disk when they end: tests are faster."""
        self._programs = programs
        self._directory = directory
        self._data = directory / "data"
        self._user = _other_user()
        self._schemas = 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"postgresql://auroral@127.0.0.1:{self.port}/postgres"
        if self._user is not None:
            shutil.chown(directory, self._user)
        self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "auroral", "-E", "UTF8")
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write(f"fsync = {'on' if power else 'off'}\nshared_buffers = 32MB\n")

    def _run(self, program: str, *given: str) -> None:
        options: dict[str, Any] = {"user": self._user} if self._user is not None else {}
        words = [str(self._programs / program), *given]
        subprocess.run(words, check=True, capture_output=True, cwd=self._directory, **options)

    def fresh(self) -> str:
        """The address of a part of the database that has no tables."""
        self._schemas += 1
        self.execute(f"CREATE SCHEMA fresh_{self._schemas}")
        return f"{self.url}?options=-csearch_path%3Dfresh_{self._schemas}"

    def start(self) -> None:
        how = f"-h 127.0.0.1 -p {self.port} -k {self._directory}"
        log = str(self._directory / "log")
        self._run("pg_ctl", "-D", str(self._data), "-o", how, "-l", log, "-w", "start")

    def stop(self) -> None:
        """At once, as if the machine had died; what was committed is there again."""
        self._run("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")

    def execute(self, text: str, *values: Any) -> list[Any]:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(text.encode(), values)
            return cursor.fetchall() if cursor.description else []


def _other_user() -> str | None:
    """Who runs the database if we are root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)
