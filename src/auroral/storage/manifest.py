"""The manifest: the catalog of a state directory, in SQLite, readable by other programs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from auroral.errors import AuroralError, RunError, StateError
from auroral.storage.segment import Segment

FORMAT = 2
"""Raised when older programs could not read what newer ones write."""

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS segment (
    id INTEGER PRIMARY KEY, log TEXT NOT NULL, file TEXT, rows INTEGER NOT NULL,
    bytes INTEGER NOT NULL, crc INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    sealed INTEGER NOT NULL, punctuations TEXT NOT NULL, bounds TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS segment_of_log ON segment (log, first);
CREATE TABLE IF NOT EXISTS cursor (
    log TEXT NOT NULL, consumer TEXT NOT NULL, head INTEGER NOT NULL, tail INTEGER NOT NULL,
    PRIMARY KEY (log, consumer));
CREATE TABLE IF NOT EXISTS step (
    id INTEGER PRIMARY KEY, superbox TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS progress (name TEXT PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS source (stream TEXT PRIMARY KEY, position TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sink (output TEXT PRIMARY KEY, position TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS counter (
    entity TEXT NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (entity, name));
"""


class Manifest:
    """Typed access to the catalog. Callers hold the store's lock."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            raise self._failed(error) from None

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            raise self._failed(error) from None

    # ── reading ──

    def meta(self, key: str) -> str | None:
        row = self._one("SELECT value FROM meta WHERE key = ?", key)
        return row[0] if row else None

    def segments(self) -> list[Segment]:
        rows = self._all(
            "SELECT id, log, file, rows, bytes, crc, first, last, sealed, punctuations,"
            " bounds FROM segment ORDER BY log, first, id"
        )
        return [
            replace(
                Segment(*row[:9]),
                punctuations=_punctuations(row[9]),
                bounds={name: tuple(pair) for name, pair in json.loads(row[10]).items()},
            )
            for row in rows
        ]

    def cursors(self) -> dict[tuple[str, str], tuple[int, int]]:
        rows = self._all("SELECT log, consumer, head, tail FROM cursor")
        return {(log, consumer): (head, tail) for log, consumer, head, tail in rows}

    def open_steps(self) -> list[tuple[int, str, int, int]]:
        """Steps that were recorded and not committed."""
        return self._all("SELECT id, superbox, first, last FROM step ORDER BY id")

    def progress(self) -> dict[str, Any]:
        return {n: json.loads(s) for n, s in self._all("SELECT name, state FROM progress")}

    def source(self, stream: str) -> Any | None:
        row = self._one("SELECT position FROM source WHERE stream = ?", stream)
        return json.loads(row[0]) if row else None

    def sink(self, output: str) -> Any | None:
        row = self._one("SELECT position FROM sink WHERE output = ?", output)
        return json.loads(row[0]) if row else None

    def counters(self) -> dict[tuple[str, str], int]:
        rows = self._all("SELECT entity, name, value FROM counter")
        return {(entity, name): value for entity, name, value in rows}

    # ── writing, within a transaction ──

    def set_meta(self, key: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def add_segment(self, segment: Segment) -> int:
        """Insert a segment; its id is given here."""
        cursor = self._db.execute(
            "INSERT INTO segment"
            " (log, file, rows, bytes, crc, first, last, sealed, punctuations, bounds)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                segment.log,
                segment.file,
                segment.rows,
                segment.bytes,
                segment.crc,
                segment.first,
                segment.last,
                segment.sealed,
                json.dumps(segment.punctuations),
                json.dumps(segment.bounds),
            ),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def remove_segments(self, ids: list[int]) -> None:
        self._db.executemany("DELETE FROM segment WHERE id = ?", [(i,) for i in ids])

    def set_cursor(self, log: str, consumer: str, head: int, tail: int) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO cursor VALUES (?, ?, ?, ?)", (log, consumer, head, tail)
        )

    def add_step(self, superbox: str, first: int, last: int) -> int:
        cursor = self._db.execute(
            "INSERT INTO step (superbox, first, last) VALUES (?, ?, ?)", (superbox, first, last)
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def remove_step(self, step: int) -> None:
        self._db.execute("DELETE FROM step WHERE id = ?", (step,))

    def set_progress(self, name: str, state: Any) -> None:
        self._db.execute("INSERT OR REPLACE INTO progress VALUES (?, ?)", (name, json.dumps(state)))

    def set_source(self, stream: str, position: Any) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO source VALUES (?, ?)", (stream, json.dumps(position))
        )

    def set_sink(self, output: str, position: Any) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO sink VALUES (?, ?)", (output, json.dumps(position))
        )

    def count(self, entity: str, name: str, more: int) -> None:
        self._db.execute(
            "INSERT INTO counter VALUES (?, ?, ?)"
            " ON CONFLICT (entity, name) DO UPDATE SET value = value + excluded.value",
            (entity, name, more),
        )

    # ── inside ──

    def _all(self, sql: str, *values: Any) -> list[Any]:
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._failed(error) from None

    def _one(self, sql: str, *values: Any) -> Any | None:
        rows = self._all(sql, *values)
        return rows[0] if rows else None

    def _failed(self, error: sqlite3.DatabaseError) -> AuroralError:
        """Operational errors are the disk's: full, read-only, gone. Others are damage."""
        if isinstance(error, sqlite3.OperationalError):
            return RunError(
                "CANNOT_WRITE",
                f"cannot use the manifest: {error}",
                where=str(self.path),
                hint="free some space or mend the disk, then start again",
            )
        return StateError(
            "MANIFEST_DAMAGED",
            f"the manifest cannot be read: {error}",
            where=str(self.path),
            hint="restore it from a backup of the state directory",
        )


def _punctuations(text: str) -> tuple[tuple[int, Any, tuple[Any, ...]], ...]:
    return tuple((moment, value, tuple(group)) for moment, value, group in json.loads(text))
