"""The values of families on disk, where a restart finds them.

Rows that are added to a family later are files of their own. Thousands of small ones would make
a restart slow, so it puts them together.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.feather

from auroral.eddy.families import SMALL, family_of
from auroral.network.queries import Family, Query
from auroral.storage import QueryRow, Store
from auroral.storage.segment import disk_errors


class FamilyValues:
    """The files of a state directory that hold values of families."""

    def __init__(self, store: Store):
        self._store = store
        self._directory = store.directory / "queries"

    def write(self, name: str, table: pa.Table) -> str | None:
        """Keep values under a name that no other ever has; returns the file, if state is kept."""
        if not self._store.durable:
            return None
        self._directory.mkdir(exist_ok=True)
        path = self._directory / f"values-{name}.arrow"
        with disk_errors(path):
            pyarrow.feather.write_feather(table, str(path), compression="zstd")
            with path.open("rb+") as file:
                os.fsync(file.fileno())
        return path.name

    def drop(self, files: Iterable[str | None]) -> None:
        """Delete some values."""
        for file in files:
            if file is not None:
                (self._directory / file).unlink(missing_ok=True)

    def sweep(self, used: Iterable[str | None]) -> None:
        """Delete the values of families that are no more."""
        keep = set(used)
        for path in self._directory.glob("values-*"):
            if path.name not in keep:
                path.unlink()

    def query_of(self, row: QueryRow) -> Query:
        """The query of a row, or the family with its values."""
        document = json.loads(row.document)
        if "key" not in document:
            return Query(document["sql"], results=document["results"])
        path = str(self._directory / str(row.file))
        return Family(document["sql"], path, document["key"], results=document["results"])

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
