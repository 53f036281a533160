"""Tables written or read a moment ago, so that delivery need not read them back each time."""

from __future__ import annotations

import threading
from collections import OrderedDict

import pyarrow as pa


class TableCache:
    """The newest tables, up to so many bytes."""

    def __init__(self, limit_bytes: int):
        self._limit = limit_bytes
        self._lock = threading.Lock()
        self._tables: OrderedDict[str, pa.Table] = OrderedDict()
        self._bytes = 0

    def get(self, file: str) -> pa.Table | None:
        return self._tables.get(file)

    def put(self, file: str, table: pa.Table) -> None:
        with self._lock:
            before = self._tables.pop(file, None)
            self._tables[file] = table
            self._bytes += table.nbytes - (0 if before is None else before.nbytes)
            while self._bytes > self._limit:
                self._bytes -= self._tables.popitem(last=False)[1].nbytes

    def drop(self, file: str) -> None:
        with self._lock:
            table = self._tables.pop(file, None)
            if table is not None:
                self._bytes -= table.nbytes
