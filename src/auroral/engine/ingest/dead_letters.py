"""Dead letters of a running engine: appended to a file, counted by reason, exactly once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from auroral.io.chunk import DeadLetter
from auroral.io.dead_letters import DeadLetterFile
from auroral.storage import Change, Store

POSITION = "dead letters"
"""The name under which the manifest keeps the position in the file."""


class DeadLetters:
    """The dead-letter file; it appears with the first letter."""

    def __init__(self, path: Path, store: Store):
        self.path = path
        self._lock = threading.Lock()
        self._file: DeadLetterFile | None = None
        self._position = store.manifest.sink(POSITION)
        self._sync = store.power
        self._private = store.directory in path.absolute().parents
        if self._position is not None:
            self._open()

    def commit(self, store: Store, change: Change, letters: Sequence[DeadLetter]) -> None:
        """Commit a change together with the letters that came with it."""
        if not letters:
            store.commit(change)
            return
        with self._lock:
            position = self._open().append(letters)
            counts = dict(change.counts)
            for letter in letters:
                key = (letter.source, "dead")
                counts[key] = counts.get(key, 0) + 1
            sinks = {**change.sinks, POSITION: position}
            store.commit(replace(change, counts=counts, sinks=sinks))
            self._position = position

    def _open(self) -> DeadLetterFile:
        if self._file is None:
            self._file = DeadLetterFile(self.path, durable=self._sync, private=self._private)
            self._file.open(self._position)
        return self._file

    def close(self) -> None:
        if self._file:
            self._file.close()
