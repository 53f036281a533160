"""One run at a time in a state directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from auroral.disk import disk_errors, make_directory
from auroral.errors import StateError, UsageError


class DirectoryLock:
    """Held while the process lives; the operating system releases it when the process dies.

    Makes the directory if there is none.
    """

    def __init__(self, directory: Path, *, power: bool = False):
        self.path = directory
        if directory.exists() and not directory.is_dir():
            problem = "state is a directory, not a file"
            raise UsageError("BAD_OPTION", problem, where=str(directory))
        with disk_errors(directory):
            make_directory(directory, sync=power)
            self._file = (directory / "lock").open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            owner = self._file.read().strip()
            self._file.close()
            raise StateError(
                "STATE_IN_USE",
                f"another run uses this state directory{f' (process {owner})' if owner else ''}",
                where=str(directory),
                hint="wait for it to end, or choose another directory",
            ) from None
        with disk_errors(directory):
            self._file.seek(0)
            self._file.truncate()
            self._file.write(str(os.getpid()))
            self._file.flush()

    def release(self) -> None:
        self._file.close()
