"""Stored data sets as one sorted run: read in order of the key, or looked up by it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from auroral.history.access import AccessChoice, choose_access
from auroral.history.index import HistoryStatistics, LookupPlan, ReadAmount
from auroral.history.merging import merged_runs, sorted_by_key
from auroral.history.predicate import KeyPredicate, comparable_column
from auroral.history.run_file import (
    GROUP_ROWS,
    RunDirectory,
    key_of,
    read_batches,
    read_directory,
    read_groups,
    write_run,
)

_SORTED_ROWS = 1_000_000
"""So many rows are sorted in memory."""


def write_sorted(
    path: Path,
    key: str,
    schema: pa.Schema,
    tables: Iterable[pa.Table],
    *,
    sync: bool,
    spill: Path,
    sorted_rows: int = _SORTED_ROWS,
    group_rows: int = GROUP_ROWS,
) -> None:
    """Write rows in order of the key; equal keys stay in order.

    What does not fit into memory is sorted in parts, in the new directory `spill`, and merged.
    """
    spill.mkdir(parents=True)
    try:
        parts: list[Path] = []
        held: list[pa.Table] = []
        for table in tables:
            held.append(table)
            if sum(each.num_rows for each in held) >= sorted_rows:
                parts.append(spill / f"{len(parts)}.parquet")
                ordered = sorted_by_key(pa.concat_tables(held), key)
                write_run(parts[-1], key, schema, [ordered], sync=False, group_rows=group_rows)
                held = []
        last = sorted_by_key(pa.concat_tables([schema.empty_table(), *held]), key)
        runs = [_all_rows(part, key, sorted_rows // len(parts)) for part in parts]
        merged = merged_runs([*runs, iter([last])], key)
        write_run(path, key, schema, merged, sync=sync, group_rows=group_rows)
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def _all_rows(path: Path, key: str, batch_rows: int) -> Iterator[pa.Table]:
    directory = read_directory(path, key)
    return read_batches(path, directory, range(len(directory.groups)), batch_rows)


class SortedDataSet:
    """A data set that `write_sorted` wrote."""

    def __init__(self, path: Path, key: str):
        self.path = path
        self.key = key
        self.directory = read_directory(path, key)

    @property
    def amount(self) -> ReadAmount:
        """All there is."""
        return _amount(self.directory, range(len(self.directory.groups)))

    def statistics(self) -> HistoryStatistics:
        """How many rows and keys it has, for estimates of costs."""
        all_of_it, keys = self.amount, self.directory.distinct
        return HistoryStatistics(
            all_of_it.rows, all_of_it.bytes, keys, 1, all_of_it.rows, all_of_it.bytes
        )

    def choice(self, predicate: KeyPredicate | None) -> AccessChoice:
        """How the rows that may satisfy a predicate are read."""
        if predicate is None:
            reason = f"all {self.amount.rows:,} rows are wanted"
            return AccessChoice("scan", float(self.amount.bytes), reason)
        groups = self.directory.matching(predicate)
        return choose_access(LookupPlan(_amount(self.directory, groups), self.amount, len(groups)))

    def rows(self, predicate: KeyPredicate | None, batch_rows: int) -> Iterator[pa.Table]:
        """The rows that satisfy a predicate, in order of the key."""
        directory = self.directory
        wanted: Sequence[int] = range(len(directory.groups))
        if predicate is not None:
            wanted = directory.matching(predicate)
        for table in read_batches(self.path, directory, wanted, batch_rows):
            yield table if predicate is None else table.filter(predicate.mask(table[self.key]))


def probed_rows(path: str, probes: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """The rows of a table that may match, in order; `probes` are values sought, by column.

    If the table is sorted by one of the columns, only row groups that can hold one of its values
    are read, unless reading everything costs less.
    """
    stat = Path(path).stat()
    directory = _cached_directory(path, stat.st_size, stat.st_mtime_ns)
    if directory is not None and directory.key in probes:
        groups = _holding(directory, probes[directory.key])
        everything = _amount(directory, range(len(directory.groups)))
        plan = LookupPlan(_amount(directory, groups), everything, _stretches(groups))
        if choose_access(plan).how == "lookup":
            return read_groups(Path(path), directory, groups)
    return pq.read_table(path, memory_map=True)


@lru_cache(maxsize=32)
def _cached_directory(path: str, _size: int, _changed_ns: int) -> RunDirectory | None:
    key = key_of(Path(path))
    return None if key is None else read_directory(Path(path), key)


def _holding(directory: RunDirectory, values: pa.ChunkedArray) -> Sequence[int]:
    """The row groups that can hold one of some values; NULL equals nothing."""
    sought = comparable_column(pa.chunked_array([pc.unique(values).drop_null()]))
    if pa.types.is_floating(sought.type) and pc.any(pc.is_nan(sought)).as_py():
        return range(len(directory.groups))
    return directory.holding(sorted(sought.to_pylist()))


def _amount(directory: RunDirectory, groups: Iterable[int]) -> ReadAmount:
    wanted = [directory.groups[number] for number in groups]
    return ReadAmount(sum(g.rows for g in wanted), sum(g.bytes for g in wanted))


def _stretches(groups: Sequence[int]) -> int:
    """How many stretches of neighbouring row groups there are."""
    return sum(after != before + 1 for before, after in zip([-2, *groups], groups, strict=False))
