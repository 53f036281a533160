"""A disk that loses power: records what a run does to files, and tells what a failure may leave.

Data that were not synced may be there, be missing, or have reached the disk in part; so may names
whose directory was not synced. The manifest is recorded at each commit: SQLite syncs a commit if
its level is FULL, and is trusted to find the last one that was synced, or a later one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest

from auroral import disk
from auroral.disk import Operation
from auroral.storage.manifest import Manifest

Mode = Literal["dropped", "kept", "random"]
SECTOR = 512
FULL = 2


@dataclass(frozen=True)
class Commit:
    """The manifest after a transaction; `synced` if it is on the disk then."""

    path: Path
    image: bytes
    synced: bool


@dataclass(frozen=True)
class Note:
    """Something the test wants to know of: what an application was told so far."""

    value: Any


Event = Operation | Commit | Note


class Recorder:
    """Everything that happens to files below a directory."""

    def __init__(self, root: Path):
        self.root = root
        self.events: list[Event] = []

    def note(self, value: Any) -> None:
        self.events.append(Note(value))

    @contextmanager
    def recording(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with disk.observed(self._see), monkeypatch.context() as patch:
            commit, settle = Manifest._commit, Manifest.settle

            def committed(manifest: Manifest) -> None:
                (level,) = manifest._db.execute("PRAGMA synchronous").fetchone()
                commit(manifest)
                self.events.append(Commit(manifest.path, manifest._db.serialize(), level >= FULL))

            def settled(manifest: Manifest) -> None:
                settle(manifest)
                self.events.append(Commit(manifest.path, manifest._db.serialize(), True))

            patch.setattr(Manifest, "_commit", committed)
            patch.setattr(Manifest, "settle", settled)
            yield

    def _see(self, operation: Operation) -> None:
        if self.root in operation.path.parents or operation.path == self.root:
            if operation.kind == "rename" and not self._knows(operation.path):
                # Another process wrote it; nothing of it was synced.
                assert operation.to is not None
                data = operation.to.read_bytes()
                self.events.append(Operation("create", operation.path))
                self.events.append(Operation("write", operation.path, data))
            self.events.append(operation)

    def _knows(self, path: Path) -> bool:
        kinds = ("create", "write")
        return any(
            isinstance(e, Operation) and e.path == path and e.kind in kinds
            for e in reversed(self.events)
        )


@dataclass
class _File:
    synced: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes, at a place; None: the file was truncated there."""

    def content(self, mode: Mode, rng: Random) -> bytes:
        data = bytearray(self.synced)
        for at, written in self.pending:
            fate = {"dropped": 0.0, "kept": 1.0, "random": rng.random()}[mode]
            if written is None:
                if fate < 0.3:
                    break  # nothing that came after it can be there
                del data[at:]
            elif fate < 0.3:
                if mode == "random" and rng.random() < 0.5:  # the length is known, not the data
                    _place(data, at, bytes(len(written)))
            elif fate < 0.6:
                cut = rng.randrange(len(written) + 1)
                _place(data, at, written[:cut])
                if rng.random() < 0.5:  # what was to come after this sector is zeros
                    edge = (at + cut) - (at + cut) % SECTOR
                    kept = max(edge - at, 0)
                    del data[at + kept :]
                    _place(data, at + kept, bytes(len(written) - kept))
            else:
                _place(data, at, written)
        return bytes(data)


def _place(data: bytearray, at: int, written: bytes) -> None:
    if len(data) < at:
        data += bytes(at - len(data))
    data[at : at + len(written)] = written


Change = dict[Path, "_File | None"]
"""What names stand for after an operation; None: nothing. A directory is an empty file."""


class FailingDisk:
    """The state of a disk after some events."""

    def __init__(self) -> None:
        self._live: dict[Path, _File] = {}
        self._names: dict[Path, _File] = {}
        self._unsynced: dict[Path, list[Change]] = {}
        self._directories: set[Path] = set()
        self._manifests: list[Commit] = []
        """The last that was synced, and those after it."""

    def apply(self, event: Event) -> None:
        if isinstance(event, Commit):
            self._manifests = [event] if event.synced else [*self._manifests, event]
        elif isinstance(event, Operation):
            self._operate(event)

    def _operate(self, event: Operation) -> None:
        path = event.path
        match event.kind:
            case "create":
                self._rename({path: _File()})
            case "mkdir":
                self._directories.add(path)
                self._rename({path: _File()})
            case "write":
                self._live[path].pending.append((event.at, event.data))
            case "truncate":
                self._live[path].pending.append((event.at, None))
            case "rename":
                assert event.to is not None
                self._rename({path: None, event.to: self._live[path]})
            case "unlink":
                self._rename({path: None})
            case "sync":
                file = self._live[path]
                file.synced, file.pending = file.content("kept", Random(0)), []
            case "sync names":
                for change in self._unsynced.pop(path, []):
                    _put(self._names, change)

    def _rename(self, change: Change) -> None:
        _put(self._live, change)
        for directory in {path.parent for path in change}:
            own = {path: file for path, file in change.items() if path.parent == directory}
            self._unsynced.setdefault(directory, []).append(own)

    def fail(self, root: Path, mode: Mode, rng: Random) -> None:
        """Put what is left below the root, in place of what is there."""
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        names = dict(self._names)
        for changes in self._unsynced.values():
            for change in changes:
                if mode == "kept" or (mode == "random" and rng.random() < 0.5):
                    _put(names, change)
        for path in sorted(names):
            if not path.parent.exists():
                continue  # its directory was lost
            if path in self._directories:
                path.mkdir(exist_ok=True)
            else:
                path.write_bytes(names[path].content(mode, rng))
        if self._manifests:
            at = {"dropped": 0, "kept": -1, "random": rng.randrange(len(self._manifests))}[mode]
            commit = self._manifests[at]
            if commit.synced or mode != "dropped":
                commit.path.parent.mkdir(parents=True, exist_ok=True)
                commit.path.write_bytes(commit.image)


def _put(names: dict[Path, _File], change: Change) -> None:
    for path, file in change.items():
        if file is None:
            names.pop(path, None)
        else:
            names[path] = file
