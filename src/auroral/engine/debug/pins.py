"""Segments that stay readable although the store drops them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from auroral.engine.runtime.train import cut
from auroral.errors import StateError
from auroral.spark.plans.plan import in_order
from auroral.storage import Segment, Store


class PinnedSegment:
    """The tuples of a segment, in memory already or in a file that is held open.

    To pin costs no reading; the file may be unlinked afterwards.
    """

    def __init__(self, store: Store, segment: Segment, first: int = 0, last: int | None = None):
        """Only moments from `first` up to, not including, `last` are wanted."""
        self.segment = segment
        self._reading = threading.Lock()
        """Several people may look at one arc."""
        self._span = first, segment.last + 1 if last is None else last
        path = store.path_of(segment)
        self._table = store.table_of_file(path)
        self._file = None if self._table is not None else pa.OSFile(str(path))

    def read(self) -> pa.Table:
        """The tuples that are wanted, with their hidden columns."""
        with self._reading:
            if self._table is None:
                assert self._file is not None
                self._table = pq.ParquetFile(self._file).read()
                self._file.close()
                self._file = None
        return cut(self._table, *self._span)

    def some(self, most: int) -> pa.Table:
        """The first rows of the segment, whatever their moments; only these are read."""
        with self._reading:
            if self._table is not None:
                return self._table.slice(0, most)
            assert self._file is not None
            file = pq.ParquetFile(self._file)
            batches = [batch for batch, _ in zip(file.iter_batches(most), range(1), strict=False)]
            self._file.close()
            self._file = None
            self._table = pa.Table.from_batches(batches, file.schema_arrow)
            return self._table


def pin(
    store: Store, segments: Sequence[Segment], first: int = 0, last: int | None = None
) -> list[PinnedSegment]:
    """Pin segments, those that hold tuples; what is gone already is left out."""
    found = []
    for segment in segments:
        if segment.file:
            try:
                found.append(PinnedSegment(store, segment, first, last))
            except (OSError, StateError):
                if store.holds(segment):
                    raise
    return found


def together(parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Tuples of several segments of one log in order, each once; `schema` if there are none."""
    parts = [part for part in parts if part.num_rows]
    if not parts:
        return schema.empty_table()
    return in_order(pa.concat_tables(parts, promote_options="permissive"))
