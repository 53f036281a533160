"""The journal: keeps small enqueues on disk until there are enough of them for a segment.

Each entry is one record batch with its stream and first moment. Entries before the manifest's
next moment are in segments already.

What is found at the end of the file after a crash may be no whole entry. The rule:

- A process that dies while it writes leaves the beginning of an entry. It was never acknowledged
  and is cut off.
- A power failure takes what was not synced: the file is shorter, or has zeros where sectors never
  reached the disk. (Entries are masked, so that zeros in the data are no zeros in the file.) Such
  an entry was never acknowledged and is cut off with all that follows, unless a later entry
  records that it had been synced.
- Everything else is damage: `JOURNAL_DAMAGED`, and nothing is cut off.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from auroral.disk import OpenFile, disk_errors, sync_directory
from auroral.errors import StateError

_FIELDS = struct.Struct("<4sIIqQQI")
"""Magic, lengths of name and batch, first moment, place, synced length, checksum of both."""
_CHECKSUM = struct.Struct("<I")
"""Of the fields before it."""
_HEAD = _FIELDS.size + _CHECKSUM.size
_MAGIC = b"AuJ2"
_SECTOR = 512
_MASK = 0xA5


@dataclass(frozen=True)
class _EntryHead:
    """The beginning of an entry."""

    name: int
    batch: int
    first: int
    place: int
    synced: int
    """How long the file was, when this entry was written, of which all had been acknowledged."""
    checksum: int

    @property
    def end(self) -> int:
        return self.place + _HEAD + self.name + self.batch

    def packed(self) -> bytes:
        fields = _FIELDS.pack(
            _MAGIC,
            self.name,
            self.batch,
            self.first,
            self.place,
            self.synced,
            self.checksum,
        )
        return fields + _CHECKSUM.pack(zlib.crc32(fields))


def _head_at(data: bytes, place: int) -> _EntryHead | None:
    """The head of an entry, if there is a whole one that says it belongs there."""
    fields = data[place : place + _FIELDS.size]
    checksum = data[place + _FIELDS.size : place + _HEAD]
    if len(checksum) < _CHECKSUM.size or _CHECKSUM.unpack(checksum)[0] != zlib.crc32(fields):
        return None
    magic, *found = _FIELDS.unpack(fields)
    head = _EntryHead(*found)
    return head if magic == _MAGIC and head.place == place else None


class Journal:
    """An append-only file of record batches; one thread at a time may append or clear."""

    def __init__(self, path: Path, *, power: bool = False):
        """With `power` an entry is acknowledged once `sync` returned, else once it is written."""
        self.path = path
        self._power = power
        self._lock = threading.Lock()
        self._file: OpenFile | None = None
        self._named = False
        """Whether the file's name is on the disk."""
        self._appended = 0
        self._synced = 0
        """Of the entries that were ever appended, how many are on the disk."""
        self._synced_bytes = 0
        self._broken = False

    def append(self, stream: str, first: int, batch: pa.RecordBatch) -> None:
        """Write an entry and hand it to the operating system."""
        name = stream.encode()
        body = _masked(name + batch.serialize().to_pybytes())
        with disk_errors(self.path):
            if self._file is None:
                self._file = OpenFile(self.path, anew=False, private=True)
            place = self._file.size
            synced = self._synced_bytes if self._power else place
            head = _EntryHead(
                len(name), len(body) - len(name), first, place, synced, zlib.crc32(body)
            )
            try:
                self._file.write(head.packed() + body)
            except OSError:
                # A torn entry would hide every later one.
                self._file.truncate(place)
                raise
        self._appended += 1

    def sync(self) -> None:
        """Return when all entries there were are on the disk; threads that wait share a sync."""
        if not self._power:
            return
        wanted = self._appended
        with self._lock, disk_errors(self.path):
            if self._synced >= wanted:
                return
            if self._broken:
                raise OSError(5, "an earlier sync of the journal failed")
            file = self._file
            assert file is not None
            appended, size = self._appended, file.size
            try:
                file.sync()
                if not self._named:
                    sync_directory(self.path.parent)
                    self._named = True
            except OSError:
                # The operating system may have dropped what it could not write.
                self._broken = True
                raise
            self._synced, self._synced_bytes = appended, size

    def entries(
        self, schemas: Mapping[str, pa.Schema]
    ) -> Iterator[tuple[str, int, pa.RecordBatch]]:
        """Every whole entry, in order; once all are read, a torn end is cut off."""
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        at = number = 0
        while at < len(data):
            head = _head_at(data, at)
            body = b"" if head is None else data[at + _HEAD : head.end]
            whole = head is not None and head.end <= len(data)
            if head is None or not whole or zlib.crc32(body) != head.checksum:
                self._require_torn(data, at, head, number)
                break
            yield self._entry(head, body, schemas, number)
            at = head.end
            number += 1
        with disk_errors(self.path):
            self._file = OpenFile(self.path, anew=False, private=True)
            if at < len(data):
                self._file.truncate(at)
            if self._power:
                # A process that died may not have synced what it wrote.
                self._file.sync()
        self._synced_bytes = at

    def _entry(
        self, head: _EntryHead, body: bytes, schemas: Mapping[str, pa.Schema], number: int
    ) -> tuple[str, int, pa.RecordBatch]:
        body = _masked(body)
        name = body[: head.name].decode(errors="replace")
        if name not in schemas:
            raise self._damaged(number, head.place, f"there is no stream {name}")
        try:
            batch = pa.ipc.read_record_batch(pa.py_buffer(body[head.name :]), schemas[name])
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise self._damaged(number, head.place, f"it cannot be read: {reason}") from None
        return name, head.first, batch

    def _require_torn(self, data: bytes, at: int, head: _EntryHead | None, number: int) -> None:
        """Refuse an entry that is not whole, unless a crash explains it."""
        if _synced_behind(data, at) > at:
            raise self._damaged(number, at, "its checksum does not match, later entries are whole")
        end = at + _HEAD if head is None else head.end
        if end <= len(data) and not _lacks_sector(data, at, end):
            raise self._damaged(number, at, "its checksum does not match")

    def _damaged(self, number: int, at: int, reason: str) -> StateError:
        return StateError(
            "JOURNAL_DAMAGED",
            f"entry {number + 1} of the journal (byte {at}) cannot be used: {reason}",
            where=str(self.path),
            hint="restore the state directory from a backup; or move the file away and go on"
            " without what was enqueued since the last step. Nothing was removed",
        )

    def clear(self) -> None:
        """Forget everything: it is in segments now."""
        with self._lock, disk_errors(self.path):
            if self._file is None and self.path.exists():
                self._file = OpenFile(self.path, anew=False, private=True)
            if self._file is not None and self._file.size:
                self._file.truncate(0)
            self._synced, self._synced_bytes = self._appended, 0

    def close(self) -> None:
        file, self._file = self._file, None
        if file:
            with contextlib.suppress(OSError):
                file.close()


def _synced_behind(data: bytes, at: int) -> int:
    """The greatest synced length that a whole head after a place records."""
    found = 0
    place = data.find(_MAGIC, at + 1)
    while place >= 0:
        head = _head_at(data, place)
        if head is not None:
            found = max(found, head.synced)
        place = data.find(_MAGIC, place + 1)
    return found


def _masked(data: bytes) -> bytes:
    """Data with its mask on, or off."""
    return (np.frombuffer(data, np.uint8) ^ _MASK).tobytes()


def _lacks_sector(data: bytes, start: int, end: int) -> bool:
    """Whether some sector never reached the disk: what it has of these bytes are zeros."""
    for begin in range(start - start % _SECTOR, end, _SECTOR):
        if not any(data[max(begin, start) : min(begin + _SECTOR, end)]):
            return True
    return False
