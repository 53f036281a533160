"""Temporary directories that the next start removes if a process was killed.

Each has a file that its process locks. The operating system releases the lock when the process
dies, however it dies, so a directory whose file can be locked belongs to nobody.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
import threading
from pathlib import Path
from typing import IO

from auroral.disk import disk_errors

_PREFIX = "auroral-"
_NAME = re.compile(r"auroral-[a-z0-9_]{8}")
_OWNER = "owner"
_lock = threading.Lock()
_swept = False


class TemporaryDirectory:
    """A directory that only we may look into, until `release` or the end of the process."""

    def __init__(self) -> None:
        _sweep_once()
        with disk_errors(tempfile.gettempdir()):
            self.path, self._file = _made()
        self._process = os.getpid()

    def release(self) -> None:
        if os.getpid() == self._process:  # a child that ends leaves it to us
            shutil.rmtree(self.path, ignore_errors=True)
        self._file.close()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.release()


def _made() -> tuple[Path, IO[bytes]]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        file = (path / _OWNER).open("wb")
        fcntl.flock(file, fcntl.LOCK_EX)
        if (path / _OWNER).exists():  # else another process took it for abandoned just before
            return path, file
        file.close()


def _sweep_once() -> None:
    global _swept  # noqa: PLW0603
    with _lock:
        if not _swept:
            _swept = True
            sweep_abandoned()


def sweep_abandoned() -> None:
    """Remove the temporary directories of processes that are dead."""
    for entry in os.scandir(tempfile.gettempdir()):
        if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            _remove_abandoned(Path(entry.path))


def _remove_abandoned(path: Path) -> None:
    try:
        if path.stat().st_uid != os.getuid():
            return
        with (path / _OWNER).open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    except OSError:
        return  # somebody has it, or it is none of ours
