"""The manifest: the catalog of a state directory, in SQLite, readable by other programs."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from auroral.disk import PRIVATE_FILE, disk_errors
from auroral.errors import AuroralError, RunError, StateError, ended
from auroral.scheduling.costs import BoxCost
from auroral.storage.commit_count import CommitCount
from auroral.storage.segment import Segment
from auroral.storage.statistics import (
    STATISTICS_TABLES,
    KeptStatistics,
    read_statistics,
    write_statistics,
)

FORMAT = 8
"""Raised when older programs could not read what newer ones write."""

_UPGRADED = 7
"""A format that becomes this one when it is opened: it lacks what shedding has to remember."""

MOST_SHED = 10_000
"""So many rows are remembered of what was shed; the oldest are forgotten first."""

CATALOG = 1
"""The version of the tables that other programs may rely on (docs/reference/catalog.md)."""

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
    id INTEGER PRIMARY KEY, superbox TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    drops TEXT);
CREATE TABLE IF NOT EXISTS shed (
    id INTEGER PRIMARY KEY, superbox TEXT NOT NULL, arc TEXT NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, drops TEXT NOT NULL, dropped INTEGER NOT NULL,
    taken INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS shed_of_arc ON shed (superbox, arc, id);
CREATE TABLE IF NOT EXISTS progress (name TEXT PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS source (stream TEXT PRIMARY KEY, position TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sink (output TEXT PRIMARY KEY, position TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS counter (
    entity TEXT NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (entity, name));
CREATE TABLE IF NOT EXISTS entity (
    kind TEXT NOT NULL, name TEXT NOT NULL, declaration TEXT, schema TEXT,
    PRIMARY KEY (kind, name));
CREATE TABLE IF NOT EXISTS box_cost (
    box TEXT PRIMARY KEY, calls INTEGER NOT NULL, tuples_in INTEGER NOT NULL,
    tuples_out INTEGER NOT NULL, seconds REAL NOT NULL, weight REAL NOT NULL,
    recent_tuples REAL NOT NULL, recent_seconds REAL NOT NULL, recent_squares REAL NOT NULL,
    recent_products REAL NOT NULL, counted_in REAL NOT NULL, counted_out REAL NOT NULL,
    call_s REAL, cost_s REAL, selectivity REAL);
CREATE TABLE IF NOT EXISTS query (
    first INTEGER PRIMARY KEY, count INTEGER NOT NULL, name TEXT NOT NULL, document TEXT NOT NULL,
    file TEXT, declared TEXT, since INTEGER NOT NULL, until INTEGER);
CREATE TABLE IF NOT EXISTS query_gone (id INTEGER PRIMARY KEY, until INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS tally (id INTEGER PRIMARY KEY, ids BLOB NOT NULL, counts BLOB NOT NULL);
"""
_MEASURED = [field.name for field in fields(BoxCost)]
_NAMES = frozenset(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", _TABLES))


@dataclass(frozen=True)
class QueryRow:
    """A registered query or family: its ids are `first` and the `count` − 1 after it.

    `file` holds the values of a family; `declared` is what the network file said of it.
    """

    first: int
    count: int
    name: str
    document: str
    file: str | None
    declared: str | None
    since: int
    until: int | None = None


@dataclass(frozen=True)
class EntityRow:
    """A part of the network as the catalog lists it: its declaration and schema in JSON."""

    kind: str
    name: str
    declaration: str | None
    schema: str | None


@dataclass(frozen=True)
class OpenStep:
    """A step that was recorded and not committed."""

    id: int
    superbox: str
    first: int
    last: int
    drops: str | None = None
    """The drop boxes in front of it, in JSON; None if there are none."""


@dataclass(frozen=True)
class ShedRow:
    """What the drop boxes of an arc did in moments from `first` to before `last`.

    Of `taken` tuples they have `dropped` some, and a superbox got the rest.
    """

    superbox: str
    arc: str
    first: int
    last: int
    drops: str
    """In JSON."""
    dropped: int
    taken: int

    def then(self, later: ShedRow) -> ShedRow | None:
        """Both as one row; None if they do not follow each other, or drop boxes are others."""
        own = self.superbox, self.arc, self.drops, self.last
        if own != (later.superbox, later.arc, later.drops, later.first):
            return None
        return replace(
            self,
            last=later.last,
            dropped=self.dropped + later.dropped,
            taken=self.taken + later.taken,
        )


class Manifest:
    """Typed access to the catalog. Callers hold the store's lock."""

    def __init__(self, path: Path, *, power: bool = False, expected: bool = False):
        """With `power` a transaction is on the disk when it ends; `expected`: there must be one."""
        self.path = path
        self._power = power
        self._closed = False
        self._commits = 0
        self._commit_count = CommitCount(path.with_name("commits"))
        self.uncertain = False
        """Whether a commit failed: a restart may find it done or not."""
        if not expected:
            with disk_errors(path):
                os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))
        elif not path.exists():
            raise self.damaged("the file is missing")
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            try:
                self._open(expected)
            except BaseException:
                self._db.close()
                raise
        except sqlite3.DatabaseError as error:
            raise self._failed(error) from None

    def _open(self, expected: bool) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._sync_commits(always=self._power)
        (found,) = self._one("PRAGMA quick_check(1)") or ("nothing was found",)
        if found != "ok":
            raise self.damaged(str(found).splitlines()[-1])
        tables = {name for (name,) in self._all("SELECT name FROM sqlite_master")}
        if "meta" in tables and self.meta("format") == str(_UPGRADED):
            self._upgrade()
            tables |= {"shed"}
        if tables & _NAMES and self.meta("format") not in (None, str(FORMAT)):
            return  # another version's, which is told by whoever opens it
        if expected and not tables >= _NAMES:
            missing = ", ".join(sorted(_NAMES - tables))
            raise self.damaged(f"there is no table {missing}" if tables else "it is empty")
        self._db.executescript(_TABLES + STATISTICS_TABLES)
        self._commits = self._found_commits(expected)

    def _upgrade(self) -> None:
        """Let a manifest of the format before have what it lacks."""
        self._db.execute("BEGIN IMMEDIATE")
        columns = {row[1] for row in self._all("PRAGMA table_info(step)")}
        if columns and "drops" not in columns:
            self._db.execute("ALTER TABLE step ADD COLUMN drops TEXT")
        for statement in _TABLES.split(";"):
            if "shed" in statement:
                self._db.execute(statement)
        self.set_meta("format", str(FORMAT))
        self._commit()

    def _found_commits(self, expected: bool) -> int:
        """How many commits the manifest has; one that forgot some is refused."""
        found = self.meta("commits") or "0"
        if not found.isdecimal():
            raise self.damaged(f"an entry makes no sense: {found!r} commits")
        least = self._commit_count.read() if expected else 0
        if int(found) < least:
            raise self.damaged(
                f"it has {found} commits of at least {least}; manifest.db-wal was removed, or"
                " manifest.db replaced by an older one"
            )
        return int(found)

    def close(self) -> None:
        self._closed = True
        self._db.close()
        self._commit_count.close()

    def settle(self) -> None:
        """Return when everything that can be read is on the disk."""
        self._all("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def transaction(self, *, lasting: bool = True) -> Iterator[sqlite3.Connection]:
        """All or nothing; one that need not be `lasting` is on the disk with the next that is."""
        relaxed = self._power and not lasting
        try:
            if relaxed:
                self._sync_commits(always=False)
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                if lasting:
                    self.set_meta("commits", str(self._commits + 1))
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            try:
                self._commit()
            except sqlite3.DatabaseError:
                self.uncertain = True
                raise
            if lasting:
                self._commits += 1
                self._commit_count.write(self._commits)
        except sqlite3.DatabaseError as error:
            raise self._failed(error) from None
        finally:
            if relaxed and not self._closed:
                self._sync_commits(always=True)

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

    def open_steps(self) -> list[OpenStep]:
        """Steps that were recorded and not committed."""
        rows = self._all("SELECT id, superbox, first, last, drops FROM step ORDER BY id")
        return [OpenStep(*row) for row in rows]

    def shed(self) -> list[ShedRow]:
        """What drop boxes did, oldest first."""
        rows = self._all(
            "SELECT superbox, arc, first, last, drops, dropped, taken FROM shed ORDER BY id"
        )
        return [ShedRow(*row) for row in rows]

    def progress(self) -> dict[str, Any]:
        return {n: json.loads(s) for n, s in self._all("SELECT name, state FROM progress")}

    def source(self, stream: str) -> Any | None:
        row = self._one("SELECT position FROM source WHERE stream = ?", stream)
        return json.loads(row[0]) if row else None

    def sink(self, output: str) -> Any | None:
        row = self._one("SELECT position FROM sink WHERE output = ?", output)
        return json.loads(row[0]) if row else None

    def sinks(self) -> dict[str, Any]:
        return {o: json.loads(p) for o, p in self._all("SELECT output, position FROM sink")}

    def counters(self) -> dict[tuple[str, str], int]:
        rows = self._all("SELECT entity, name, value FROM counter")
        return {(entity, name): value for entity, name, value in rows}

    def costs(self) -> dict[str, BoxCost]:
        rows = self._all(f"SELECT box, {', '.join(_MEASURED)} FROM box_cost")
        return {box: BoxCost(*measured) for box, *measured in rows}

    def statistics(self) -> KeptStatistics:
        """What is known of streams, queues and outputs; nothing, if an older version wrote it."""
        return read_statistics(self._all)

    def entities(self) -> list[EntityRow]:
        """What the network has, as it was declared."""
        rows = self._all("SELECT kind, name, declaration, schema FROM entity ORDER BY rowid")
        return [EntityRow(*row) for row in rows]

    def queries(self) -> list[QueryRow]:
        """Everything that is registered, or was and may still be needed, as it came."""
        rows = self._all(
            "SELECT first, count, name, document, file, declared, since, until"
            " FROM query ORDER BY first"
        )
        return [QueryRow(*row) for row in rows]

    def gone(self) -> dict[int, int]:
        """Members of families that were removed, and when."""
        return dict(self._all("SELECT id, until FROM query_gone"))

    def tallies(self) -> list[tuple[bytes, bytes]]:
        """Matches by query: arrays of ids and counts, to be added up."""
        return self._all("SELECT ids, counts FROM tally ORDER BY id")

    # ── writing, within a transaction ──

    def add_queries(self, rows: Sequence[QueryRow]) -> None:
        self._db.executemany(
            "INSERT INTO query VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [tuple(vars(row).values()) for row in rows],  # `astuple` copies every text
        )

    def end_queries(self, until: Mapping[int, int], undeclared: Sequence[int] = ()) -> None:
        """Queries, by their first id, see nothing from a moment on."""
        self._db.executemany(
            "UPDATE query SET until = ? WHERE first = ?", [(m, first) for first, m in until.items()]
        )
        self._db.executemany(
            "UPDATE query SET declared = NULL WHERE first = ?", [(first,) for first in undeclared]
        )

    def forget_queries(self, firsts: Sequence[int]) -> None:
        self._db.executemany("DELETE FROM query WHERE first = ?", [(first,) for first in firsts])

    def forget_gone(self, spans: Sequence[tuple[int, int]]) -> None:
        """Forget which members were removed, of ids from one to another (exclusive)."""
        self._db.executemany("DELETE FROM query_gone WHERE id >= ? AND id < ?", spans)

    def add_gone(self, until: Mapping[int, int]) -> None:
        self._db.executemany("INSERT OR REPLACE INTO query_gone VALUES (?, ?)", until.items())

    def add_tally(self, ids: bytes, counts: bytes, *, instead: bool) -> None:
        """Add to the tallies, or put one in place of all."""
        if instead:
            self._db.execute("DELETE FROM tally")
        self._db.execute("INSERT INTO tally (ids, counts) VALUES (?, ?)", (ids, counts))

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
                segment.complete_before,
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

    def move(self, log: str, to: str, consumer: str) -> None:
        """Let another log have the segments of one, and a consumer."""
        self._db.execute("UPDATE segment SET log = ? WHERE log = ?", (to, log))
        self._db.execute(
            "UPDATE cursor SET log = ? WHERE log = ? AND consumer = ?", (to, log, consumer)
        )

    def remove_cursors(self, keys: Sequence[tuple[str, str]]) -> None:
        self._db.executemany("DELETE FROM cursor WHERE log = ? AND consumer = ?", keys)

    def remove_progress(self, names: Sequence[str]) -> None:
        self._db.executemany("DELETE FROM progress WHERE name = ?", [(name,) for name in names])

    def remove_counters(self, keys: Sequence[tuple[str, str]]) -> None:
        self._db.executemany("DELETE FROM counter WHERE entity = ? AND name = ?", keys)

    def remove_sinks(self, target: str) -> None:
        self._db.execute("DELETE FROM sink WHERE json_extract(position, '$.to') = ?", (target,))

    def add_step(self, superbox: str, first: int, last: int, drops: str | None = None) -> int:
        cursor = self._db.execute(
            "INSERT INTO step (superbox, first, last, drops) VALUES (?, ?, ?, ?)",
            (superbox, first, last, drops),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def remove_step(self, step: int) -> None:
        self._db.execute("DELETE FROM step WHERE id = ?", (step,))

    def add_shed(self, row: ShedRow) -> None:
        """Remember what a drop box did; as part of its latest row, if that can be."""
        found = self._db.execute(
            "UPDATE shed SET last = ?, dropped = dropped + ?, taken = taken + ?"
            " WHERE id = (SELECT max(id) FROM shed WHERE superbox = ? AND arc = ?)"
            " AND last = ? AND drops = ?",
            (row.last, row.dropped, row.taken, row.superbox, row.arc, row.first, row.drops),
        )
        if found.rowcount:
            return
        self._db.execute(
            "INSERT INTO shed (superbox, arc, first, last, drops, dropped, taken)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            tuple(vars(row).values()),
        )
        self._db.execute(
            "DELETE FROM shed WHERE id <= (SELECT max(id) FROM shed) - ?", (MOST_SHED,)
        )

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

    def set_costs(self, costs: Mapping[str, BoxCost]) -> None:
        """Write what is known of boxes now; also what other programs want to know of it."""
        places = ", ".join("?" * (len(_MEASURED) + 4))
        self._db.executemany(
            f"INSERT OR REPLACE INTO box_cost VALUES ({places})",
            [
                (box, *vars(cost).values(), cost.call_s, cost.cost_s, cost.selectivity)
                for box, cost in costs.items()
            ],
        )

    def set_statistics(self, statistics: KeptStatistics) -> None:
        """Write what is known of streams, queues and outputs now."""
        write_statistics(self._db, statistics)

    def set_entities(self, rows: Sequence[EntityRow]) -> None:
        """Write what the network has now, in place of what it had."""
        self._db.execute("DELETE FROM entity")
        self._db.executemany(
            "INSERT INTO entity VALUES (?, ?, ?, ?)", [tuple(vars(row).values()) for row in rows]
        )

    def remove_costs(self, boxes: Sequence[str]) -> None:
        self._db.executemany("DELETE FROM box_cost WHERE box = ?", [(box,) for box in boxes])

    # ── inside ──

    def _commit(self) -> None:
        self._db.execute("COMMIT")

    def _sync_commits(self, *, always: bool) -> None:
        """Sync at each commit, or only when the write-ahead log is put into the database."""
        self._db.execute(f"PRAGMA synchronous={'FULL' if always else 'NORMAL'}")

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
        if self._closed:
            return ended()
        if isinstance(error, sqlite3.OperationalError):
            return RunError(
                "CANNOT_WRITE",
                f"cannot use the manifest: {error}",
                where=str(self.path),
                hint="free some space or mend the disk, then start again",
            )
        return self.damaged(str(error))

    def damaged(self, reason: str) -> StateError:
        return StateError(
            "MANIFEST_DAMAGED",
            f"the manifest cannot be read: {reason}",
            where=str(self.path),
            hint="restore the state directory from a backup, or use another directory;"
            " nothing was removed",
        )


def _punctuations(text: str) -> tuple[tuple[int, Any, tuple[Any, ...]], ...]:
    return tuple((moment, value, tuple(group)) for moment, value, group in json.loads(text))
