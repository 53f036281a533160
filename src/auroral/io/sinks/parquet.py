"""A directory of Parquet files, one per delivery."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from auroral.disk import OpenFile, make_directory, rename, sync_directory, sync_tree, unlink
from auroral.errors import RunError
from auroral.io.sinks.append import cannot_write
from auroral.io.sinks.sink import Delivery

_PART = re.compile(r"part-(\d{8,})-\d+-\d+\.parquet")


class ParquetSink:
    """Parts named by their number, first and last moment; the position is how many there are.

    A part appears under its name when it is whole. Delivered again, it replaces itself.
    """

    def __init__(self, path: str | Path, *, durable: bool = False):
        self.path = Path(path)
        self.durable = durable
        self._parts = 0

    def open(self, position: Any | None) -> None:
        self._parts = position or 0
        try:
            make_directory(self.path, sync=self.durable, private=False)
            kept = 0
            for name in os.listdir(self.path):
                part = _PART.fullmatch(name)
                if part and int(part[1]) < self._parts:
                    kept += 1
                elif part or name.endswith(".parquet.tmp"):
                    unlink(self.path / name)
            if self.durable:
                sync_tree(self.path)
        except OSError as error:
            raise cannot_write(str(self.path), error) from None
        if kept < self._parts:
            raise RunError(
                "SINK_DAMAGED",
                f"{self.path} has {kept} parts, but {self._parts} had been written",
                where=str(self.path),
                hint="put the files back, or start anew without the state directory",
            )

    def write(self, delivery: Delivery) -> Any:
        name = f"part-{self._parts:08d}-{delivery.first[0]}-{delivery.last[0]}.parquet"
        whole, partial = self.path / name, self.path / f".{name}.tmp"
        try:
            sink = pa.BufferOutputStream()
            parquet.write_table(delivery.table, sink)
            file = OpenFile(partial, anew=True)
            try:
                file.write(memoryview(sink.getvalue()))
                if self.durable:
                    file.sync()
            finally:
                file.close()
            rename(partial, whole)
            if self.durable:
                sync_directory(self.path)
        except OSError as error:
            raise cannot_write(str(whole), error) from None
        self._parts += 1
        return self._parts

    def close(self) -> None:
        """Nothing is held."""
