"""How many commits a manifest must have: a lower bound, kept in a file beside it.

SQLite keeps recent commits in `manifest.db-wal`. If that file is deleted, or `manifest.db` is
replaced by an older copy, what is left is a sound database that has forgotten commits, and
whose segments would look as if nobody needed them. The count tells such a manifest from one that
is up to date.

The count is written after a commit and never synced: a crash may leave it too small, which
proves nothing and does no harm, but never larger than the commits that were on the disk.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from pathlib import Path

from auroral.disk import OpenFile

_RECORD = struct.Struct("<QI")


class CommitCount:
    """The file that says how many commits there were at least."""

    def __init__(self, path: Path):
        self._path = path
        self._file: OpenFile | None = None

    def read(self) -> int:
        """The last count that was written; 0 if there is none, or if a failure tore it."""
        try:
            data = self._path.read_bytes()
        except OSError:
            return 0
        if len(data) != _RECORD.size:
            return 0
        count, _ = _RECORD.unpack(data)
        return int(count) if data == _record(count) else 0

    def write(self, count: int) -> None:
        """Note a commit that was made. It stays made if this fails: an older count is true too."""
        with contextlib.suppress(OSError):
            if self._file is None:
                self._file = OpenFile(self._path, anew=False, private=True)
            self._file.overwrite(_record(count))

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


def _record(count: int) -> bytes:
    return _RECORD.pack(count, zlib.crc32(count.to_bytes(8, "little")))
