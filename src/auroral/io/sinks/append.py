"""A file that only grows, and can be cut back to where a crashed run had been."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

from auroral.errors import RunError


def cannot_write(path: str, error: OSError) -> RunError:
    reason = error.strerror or str(error)
    return RunError("CANNOT_WRITE", f"cannot write: {reason}", where=path)


class AppendFile:
    """Bytes appended to a file; a position is the file's length in bytes."""

    def __init__(self, path: str | Path, *, durable: bool = False):
        self.path = str(path)
        self.durable = durable
        self._file: BinaryIO | None = None
        self._size = 0

    def open(self, position: Any | None, header: bytes = b"") -> None:
        """Start anew with `header`, or cut the file to `position`."""
        self.close()
        try:
            if position is None:
                self._file, self._size = open(self.path, "wb", buffering=0), 0  # noqa: SIM115
                if header:
                    self.append(header)
                return
            self._check(position)
            self._file = open(self.path, "r+b", buffering=0)  # noqa: SIM115
            self._file.truncate(position)
            self._size = self._file.seek(position)
        except OSError as error:
            raise cannot_write(self.path, error) from None

    def append(self, data: bytes | memoryview) -> int:
        """Write all of `data`, and return the position after it."""
        if self._file is None:
            raise RunError("CANNOT_WRITE", f"{self.path} is not open", where=self.path)
        try:
            rest = memoryview(data)
            while len(rest):
                rest = rest[self._file.write(rest) :]
            if self.durable and len(data):
                os.fsync(self._file.fileno())
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self._size += len(data)
        return self._size

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _check(self, position: int) -> None:
        size = os.path.getsize(self.path) if os.path.exists(self.path) else 0
        if size < position:
            raise RunError(
                "SINK_DAMAGED",
                f"{self.path} has {size} bytes, but {position} had been written",
                where=self.path,
                hint="put the file back, or start anew without the state directory",
            )
