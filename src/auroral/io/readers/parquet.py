"""Parquet files: columns by name, cast without loss, row group by row group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from auroral.errors import UsageError
from auroral.io.chunk import Chunk
from auroral.io.fit import match_columns, misplaced
from auroral.io.readers.blocks import open_file
from auroral.io.rows import RowReader


class ParquetReader:
    """Reads one Parquet file in batches; a base names a row group and rows passed in it."""

    def __init__(self, path: str, rows: RowReader, batch_rows: int):
        self.path = path
        self.rows = rows
        self.batch_rows = batch_rows
        names = self._open().schema_arrow.names
        places = match_columns(names, rows.given)
        problem = misplaced(names, rows.given, places, rows.extra)
        if problem:
            raise UsageError(
                "HEADER_MISMATCH",
                f"the columns of {path} do not fit: {problem}; expected"
                f" {','.join(rows.given.names)}, found {','.join(names)}",
                where=path,
            )
        self.timed = "_at" in places
        self._at = names[places["_at"]] if self.timed else ""

    def start(self) -> Any:
        return {"group": 0}

    def chunks(self, base: Any) -> Iterator[Chunk]:
        file = self._open()
        for group in range(base["group"], file.num_row_groups):
            passed = 0
            for table in self._tables(file, group):
                try:
                    chunk = self.rows.read_table(table, base={"group": group}, skip=passed)
                except UsageError as error:
                    raise error.at(self.path) from None
                yield _numbered(chunk, file, group)
                passed += table.num_rows

    def arrivals(self) -> Iterator[np.ndarray]:
        file = self._open()
        for group in range(file.num_row_groups):
            for table in self._tables(file, group, [self._at]):
                column = table.column(0).cast(pa.float64(), safe=False)
                yield np.asarray(column.to_numpy(), dtype=np.float64)

    def _tables(
        self, file: parquet.ParquetFile, group: int, columns: list[str] | None = None
    ) -> Iterator[pa.Table]:
        try:
            for batch in file.iter_batches(self.batch_rows, row_groups=[group], columns=columns):
                yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None

    def _open(self) -> parquet.ParquetFile:
        open_file(self.path).close()
        try:
            return parquet.ParquetFile(self.path)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> UsageError:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return UsageError("CANNOT_READ", f"cannot read {self.path}: {reason}", where=self.path)


def _numbered(chunk: Chunk, file: parquet.ParquetFile, group: int) -> Chunk:
    """Dead letters name their row, as Parquet has no lines."""
    if not chunk.dead:
        return chunk
    before = sum(file.metadata.row_group(g).num_rows for g in range(group))
    dead = tuple(
        replace(letter, reason=f"row {before + int(number)}: {letter.reason}")
        for letter, number in zip(chunk.dead, chunk.offsets.dead, strict=True)
    )
    return replace(chunk, dead=dead)
