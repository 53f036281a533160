"""Reading a manifest that another process may be writing to."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import TracebackType

from auroral.errors import StateError, UsageError
from auroral.storage.identity import wrong_format
from auroral.storage.manifest import FORMAT, Manifest


class ManifestSnapshot(Manifest):
    """The manifest of a state directory as it is at one moment, for the length of a block.

    Nothing is locked or written: SQLite's write-ahead log gives readers one state of the database
    while others commit.
    """

    def __init__(self, directory: Path):
        self.path = directory / "manifest.db"
        self._closed = False
        if not self.path.is_file():
            raise UsageError(
                "NO_STATE",
                "there is no state directory here: it has no manifest.db",
                where=str(directory),
                hint="give the directory that a network was run with (--state)",
            )
        try:
            self._db = self._connect()
        except sqlite3.DatabaseError as error:
            raise self._unreadable(error) from None
        try:
            self._db.execute("BEGIN")
            found = self.meta("format")
            if found != str(FORMAT):
                raise wrong_format(found, directory)
        except sqlite3.DatabaseError as error:
            self.close()
            raise self._unreadable(error) from None
        except BaseException:
            self.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?mode=ro"
        try:
            db = sqlite3.connect(address, uri=True, isolation_level=None)
            db.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.OperationalError:
            # In a directory that cannot be written to, nobody else can write either.
            if self.path.with_name("manifest.db-wal").exists():
                raise
            db = sqlite3.connect(f"{address}&immutable=1", uri=True, isolation_level=None)
        return db

    def close(self) -> None:
        self._closed = True
        self._db.close()

    def __enter__(self) -> ManifestSnapshot:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def all_meta(self) -> dict[str, str]:
        """What is kept under single keys: format, network, moments."""
        return dict(self._all("SELECT key, value FROM meta"))

    def log_sizes(self) -> dict[str, tuple[int, int, int]]:
        """By log the segments, rows and bytes that it holds."""
        rows = self._all("SELECT log, count(*), sum(rows), sum(bytes) FROM segment GROUP BY log")
        return {log: (segments, held, size) for log, segments, held, size in rows}

    def _unreadable(self, error: sqlite3.DatabaseError) -> StateError:
        return self.damaged(str(error))
