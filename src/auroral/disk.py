"""File operations whose order decides what is left after a power failure.

An operating system keeps writes in memory for a while. A file's content is on the disk once the
file was synced, and its name is on the disk once its directory was synced. Everything that a state
directory and the sinks depend on is written through this module, and an observer sees each
operation in order, so that a test can replay what a failure at any point would leave.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from auroral.errors import RunError

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600
_MOST_THREADS = 8
Data = bytes | bytearray | memoryview


@dataclass(frozen=True)
class Operation:
    """One operation on a file or a directory, as an observer sees it."""

    kind: Literal["create", "write", "truncate", "sync", "rename", "unlink", "mkdir", "sync names"]
    path: Path
    data: bytes = b""
    """What was written."""
    at: int = 0
    """Where it was written, or the length after truncating."""
    to: Path | None = None
    """The new name."""


Observer = Callable[[Operation], None]
_observer: Observer | None = None


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Show every operation of this process to an observer, after it was done."""
    global _observer  # noqa: PLW0603
    before, _observer = _observer, observer
    try:
        yield
    finally:
        _observer = before


def _tell(kind: Any, path: Path | str, **more: Any) -> None:
    if _observer is not None:
        _observer(Operation(kind, Path(path).absolute(), **more))


@contextmanager
def disk_errors(path: Path | str) -> Iterator[None]:
    """Turn a full or unwritable disk into one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise RunError(
            "CANNOT_WRITE",
            f"cannot write: {reason}",
            where=str(path),
            hint=f"{'free some space or ' if full else ''}choose another state directory,"
            " then start again",
        ) from error


class OpenFile:
    """A file that is written at its end, or replaced in place."""

    def __init__(self, path: Path | str, *, anew: bool, private: bool = False):
        """Open a file, or create it; `anew` drops what was in it."""
        self.path = Path(path)
        created = _observer is not None and not self.path.exists()
        mode = PRIVATE_FILE if private else 0o666
        self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, mode)
        if created:
            _tell("create", self.path)
        found = os.fstat(self._handle)
        self.regular = stat.S_ISREG(found.st_mode)
        """Not a terminal, a pipe or the like, which cannot be synced."""
        self.size = found.st_size if self.regular else 0
        if anew and self.size:
            self.truncate(0)

    def write(self, data: Data) -> None:
        """Append all of `data`."""
        rest = memoryview(data)
        while len(rest):
            if self.regular:
                count = os.pwrite(self._handle, rest, self.size)
            else:
                count = os.write(self._handle, rest)
            if _observer is not None:
                _tell("write", self.path, data=bytes(rest[:count]), at=self.size)
            self.size += count
            rest = rest[count:]

    def overwrite(self, data: Data) -> None:
        """Put `data` at the start of a regular file, in one call, in place of what was there."""
        count = os.pwrite(self._handle, data, 0)
        if _observer is not None:
            _tell("write", self.path, data=bytes(data[:count]))
        self.size = max(self.size, count)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._handle, size)
        self.size = size
        _tell("truncate", self.path, at=size)

    def sync(self) -> None:
        """Return when the content is on the disk."""
        if self.regular:
            os.fsync(self._handle)
            _tell("sync", self.path)

    def close(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def write_whole(path: Path, data: Data, *, sync: bool) -> None:
    """Write a file under a temporary name, then rename; with `sync` its content is on the disk.

    Its name is on the disk once the directory was synced.
    """
    temporary = path.with_name(path.name + ".tmp")
    file = OpenFile(temporary, anew=True)
    try:
        file.write(data)
        if sync:
            file.sync()
    finally:
        file.close()
    rename(temporary, path)


def rename(path: Path, to: Path) -> None:
    """Give a file another name; a file that had this name is gone."""
    os.replace(path, to)
    _tell("rename", path, to=Path(to).absolute())


def unlink(path: Path) -> None:
    """Remove a file; it may be gone already."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    _tell("unlink", path)


def make_directory(path: Path, *, sync: bool, private: bool = True) -> None:
    """Make a directory, and those above it, if there are none; only we may look into it."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(exist_ok=True, mode=PRIVATE_DIRECTORY if private and each == path else 0o777)
        _tell("mkdir", each)
    for each in reversed(missing) if sync else ():
        sync_directory(each.parent)


def sync_file(path: Path | str) -> None:
    """Return when the content of a file is on the disk, whoever wrote it."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    _tell("sync", path)


def sync_directory(path: Path | str) -> None:
    """Return when the names in a directory are on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    _tell("sync names", path)


def sync_files(paths: Iterable[Path]) -> None:
    """Sync several files at once."""
    files = list(paths)
    if len(files) < 2:
        for path in files:
            sync_file(path)
        return
    with ThreadPoolExecutor(min(len(files), _MOST_THREADS)) as pool:
        list(pool.map(sync_file, files))


def sync_tree(path: Path, since: float = 0.0) -> None:
    """Sync what others wrote below a directory; of the files, those changed since a time."""
    files, directories = [], []
    for place, _, names in os.walk(path):
        directories.append(Path(place))
        found = (Path(place, name) for name in names)
        files += [file for file in found if file.is_file() and file.stat().st_mtime >= since]
    sync_files(files)
    for directory in directories:
        sync_directory(directory)


class Unsynced:
    """Files and directories that must be synced before the next commit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: set[Path] = set()
        self._directories: set[Path] = set()

    def add(self, path: Path, *, content: bool) -> None:
        """A file has a new name; with `content`, what is in it is not synced either."""
        with self._lock:
            self._directories.add(path.parent)
            if content:
                self._files.add(path)

    def sync(self) -> None:
        """Sync them all: files at once, then each directory once."""
        with self._lock:
            files, directories = self._files, self._directories
            self._files, self._directories = set(), set()
        try:
            sync_files(files)
            for directory in directories:
                sync_directory(directory)
        except BaseException:
            with self._lock:
                self._files |= files
                self._directories |= directories
            raise
