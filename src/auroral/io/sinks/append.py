"""A file that only grows, and can be cut back to where a crashed run had been."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from auroral.disk import OpenFile, sync_directory
from auroral.errors import RunError


def cannot_write(path: str, error: OSError) -> RunError:
    reason = error.strerror or str(error)
    return RunError("CANNOT_WRITE", f"cannot write: {reason}", where=path)


class AppendFile:
    """Bytes appended to a file; a position is the file's length in bytes."""

    def __init__(self, path: str | Path, *, durable: bool = False, private: bool = False):
        self.path = str(path)
        self.durable = durable
        """Whether `sync` waits for the disk."""
        self._private = private
        self._file: OpenFile | None = None

    def open(self, position: Any | None, header: bytes = b"") -> None:
        """Start anew with `header`, or cut the file to `position`."""
        self.close()
        try:
            if position is not None:
                self._check(position)
            self._file = OpenFile(self.path, anew=position is None, private=self._private)
            if position is None:
                self.append(header)
            elif self._file.size > position:
                self._file.truncate(position)
            self.sync()
            if self.durable and self._file.regular:
                sync_directory(os.path.dirname(os.path.abspath(self.path)))
        except OSError as error:
            raise cannot_write(self.path, error) from None

    def append(self, data: bytes | memoryview) -> int:
        """Write all of `data`, and return the position after it."""
        if self._file is None:
            raise RunError("CANNOT_WRITE", f"{self.path} is not open", where=self.path)
        try:
            self._file.write(data)
        except OSError as error:
            raise cannot_write(self.path, error) from None
        return self._file.size

    def sync(self) -> None:
        """Return when what was written is on the disk, if it is to be durable."""
        if not self.durable or self._file is None:
            return
        try:
            self._file.sync()
        except OSError as error:
            raise cannot_write(self.path, error) from None

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
