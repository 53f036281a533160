"""The journal: makes small enqueues durable before there are enough of them for a segment.

Each entry is one record batch with its stream and first moment. Entries before the manifest's
next moment are in segments already. A torn last entry (the process died while writing it) was
never acknowledged and is cut off.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa

from auroral.storage.segment import disk_errors

_HEAD = struct.Struct("<IIIq")
"""Length of the stream's name, length of the batch, checksum, first moment."""


class Journal:
    """An append-only file of record batches."""

    def __init__(self, path: Path):
        self.path = path
        self._file: IO[bytes] | None = None

    def append(self, stream: str, first: int, batch: pa.RecordBatch) -> None:
        """Write an entry and hand it to the operating system."""
        body = batch.serialize()
        name = stream.encode()
        head = _HEAD.pack(len(name), body.size, zlib.crc32(body), first)
        with disk_errors(self.path):
            if self._file is None:
                self._file = self.path.open("ab")
            whole = self._file.tell()
            try:
                self._file.write(head + name + body.to_pybytes())
                self._file.flush()
            except OSError:
                # A torn entry would hide every later one.
                self.close()
                os.truncate(self.path, whole)
                raise

    def entries(self, schemas: dict[str, pa.Schema]) -> Iterator[tuple[str, int, pa.RecordBatch]]:
        """Every whole entry, in order; once all are read, a torn last one is cut off."""
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        at = 0
        while at + _HEAD.size <= len(data):
            name_length, length, checksum, first = _HEAD.unpack_from(data, at)
            start = at + _HEAD.size + name_length
            body = data[start : start + length]
            if len(body) < length or zlib.crc32(body) != checksum:
                break
            name = data[at + _HEAD.size : start].decode()
            yield name, first, pa.ipc.read_record_batch(pa.py_buffer(body), schemas[name])
            at = start + length
        if at < len(data):
            os.truncate(self.path, at)

    def clear(self) -> None:
        """Forget everything: it is in segments now."""
        self.close()
        with disk_errors(self.path):
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        file, self._file = self._file, None
        if file:
            with contextlib.suppress(OSError):
                file.close()
