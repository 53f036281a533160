"""The values of families on disk, where a restart finds them.

Rows that are added to a family later are files of their own. Thousands of small ones would make
a restart slow, so it puts them together.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather

from auroral.disk import disk_errors, make_directory, unlink, write_whole
from auroral.eddy.families import SMALL, family_of
from auroral.errors import StateError
from auroral.network.queries import Family, Query
from auroral.storage import QueryRow, Store
from auroral.storage.segment import checksum


class FamilyValues:
    """The files of a state directory that hold values of families."""

    def __init__(self, store: Store):
        self._store = store
        self._directory = store.directory / "queries"

    def write(self, name: str, table: pa.Table) -> str | None:
        """Keep values under a name that no other ever has; returns the file, if state is kept."""
        if not self._store.durable:
            return None
        sink = pa.BufferOutputStream()
        pyarrow.feather.write_feather(table, sink, compression="zstd")
        data = sink.getvalue()
        path = self._directory / f"values-{name}-{zlib.crc32(data):08x}.arrow"
        with disk_errors(path):
            make_directory(self._directory, sync=self._store.power)
            write_whole(path, memoryview(data), sync=self._store.power)
        self._store.needs_sync(path, content=False)
        return path.name

    def drop(self, files: Iterable[str | None]) -> None:
        """Delete some values."""
        for file in files:
            if file is not None:
                unlink(self._directory / file)

    def sweep(self, used: Iterable[str | None]) -> None:
        """Delete the values of families that are no more."""
        keep = set(used)
        for path in self._directory.glob("values-*"):
            if path.name not in keep:
                unlink(path)

    def query_of(self, row: QueryRow) -> Query:
        """The query of a row, or the family with its values."""
        document = json.loads(row.document)
        if "key" not in document:
            return Query(document["sql"], results=document["results"])
        path = self._directory / str(row.file)
        _verify(path, row)
        return Family(document["sql"], str(path), document["key"], results=document["results"])

    def put_together(self, rows: Sequence[QueryRow], head: int) -> list[QueryRow]:
        """The same queries in fewer rows: those that came in small pieces, one after another.

        All that is left to process comes after them, so it does not matter any more when each
        came.
        """
        found: list[QueryRow] = []
        old: list[int] = []
        for run in _runs(rows, head):
            for pieces, tables in self._alike(run):
                if len(pieces) == 1:
                    found += pieces
                    continue
                first, count = pieces[0].first, sum(piece.count for piece in pieces)
                file = self.write(f"{first}-{count}", pa.concat_tables(tables).combine_chunks())
                found.append(replace(pieces[0], count=count, file=file))
                old += [piece.first for piece in pieces]
        if old:
            there = set(rows)
            self._store.replace_queries(old, [row for row in found if row not in there])
        return found

    def _alike(
        self, run: Sequence[QueryRow]
    ) -> Iterator[tuple[Sequence[QueryRow], list[pa.Table]]]:
        """Pieces whose values can be one table: columns agree, and no key comes twice."""
        if len(run) == 1:
            yield run, []
            return
        pieces: list[QueryRow] = []
        tables: list[pa.Table] = []
        keys: set[Any] = set()
        for row in run:
            query = self.query_of(row)
            assert isinstance(query, Family)
            table = query.table()
            own = table[query.key].to_pylist()
            if pieces and (table.schema != tables[0].schema or not keys.isdisjoint(own)):
                yield pieces, tables
                pieces, tables, keys = [], [], set()
            pieces.append(row)
            tables.append(table)
            keys.update(own)
        yield pieces, tables


def _verify(path: Path, row: QueryRow) -> None:
    """Refuse values that are gone or were changed; the name of the file has its checksum."""
    try:
        found = checksum(path)
    except OSError:
        reason = "the file is missing"
    else:
        if path.stem.endswith(f"-{found:08x}"):
            return
        reason = "its checksum does not match"
    raise StateError(
        "VALUES_DAMAGED",
        f"the values of the family {family_of(row.name)} cannot be used: {reason}",
        where=str(path),
        hint="restore the file from a backup of the state directory; nothing was skipped",
    )


def _runs(rows: Sequence[QueryRow], head: int) -> Iterator[list[QueryRow]]:
    """Rows that may be put together, and others by themselves, as they came."""
    run: list[QueryRow] = []
    for row in rows:
        if run and not (_may_grow(run[-1], head) and _follows(run[-1], row, head)):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _may_grow(row: QueryRow, head: int) -> bool:
    """Whether a row is a small piece of a family that is there before all that is to come."""
    later = "+" in row.name and row.file is not None and row.declared is None
    return later and row.count < SMALL and row.until is None and row.since <= head


def _follows(before: QueryRow, row: QueryRow, head: int) -> bool:
    alike = family_of(row.name) == family_of(before.name) and row.document == before.document
    return alike and _may_grow(row, head) and row.first == before.first + before.count


def gone_of(rows: Sequence[QueryRow], gone: Mapping[int, int]) -> dict[int, dict[int, int]]:
    """Members that were removed and when, by the first id of their row and their number there."""
    firsts = [row.first for row in rows]
    found: dict[int, dict[int, int]] = {}
    for query, moment in gone.items():
        at = bisect_right(firsts, query) - 1
        if at >= 0 and query < firsts[at] + rows[at].count:
            found.setdefault(firsts[at], {})[query - firsts[at]] = moment
    return found
