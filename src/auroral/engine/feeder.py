"""The feeder: takes rows from sources, in their order of arrival, as fast as steps follow."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from auroral.errors import AuroralError, RunError
from auroral.io.interleave import Interleaver
from auroral.io.source import Source

if TYPE_CHECKING:
    from auroral.engine.engine import Engine

ALL_SOURCES = "all sources"
"""The name under which the manifest keeps how far the sources were read."""
_POLL_S = 0.05
_BACKLOG_TRAINS = 4
_MOST_ROWS = 250_000


class Feeder:
    """Pulls from all bound sources together, in a thread of its own or step by step."""

    def __init__(self, engine: Engine, sources: Sequence[Source], train: int):
        self._engine = engine
        self._limit = min(train, _MOST_ROWS)
        self._backlog = _BACKLOG_TRAINS * train
        self._sources = list(sources)
        self._interleaver = Interleaver(self._sources) if sources else None
        position = engine._store.manifest.source(ALL_SOURCES)
        if self._interleaver and position is not None:
            self._interleaver.seek(position)
        self.exhausted = self._interleaver is None
        """Set by whoever pulls; sources are not to be asked from other threads."""
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    @property
    def finite(self) -> bool:
        """Whether all sources end by themselves."""
        return all(source.finite for source in self._sources)

    def start(self) -> None:
        if self._interleaver is not None:
            self._thread = threading.Thread(target=self._loop, name="auroral-feeder", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread:
            self._thread.join()
        for source in self._sources:
            source.close()

    def pull(self) -> bool:
        """Take one train's rows; False if there was nothing."""
        if self._interleaver is None or self.exhausted:
            return False
        parts = self._interleaver.next(self._limit)
        if parts:
            self._engine._ingest.feed(parts, {ALL_SOURCES: self._interleaver.offset})
        else:
            self.exhausted = self._interleaver.exhausted
        return bool(parts)

    def _loop(self) -> None:
        try:
            while not self._stopped.is_set() and not self.exhausted:
                waiting = self._engine._ingest.next_moment - self._engine._stepper.done_before()
                if waiting >= self._backlog or not self.pull():
                    self._stopped.wait(_POLL_S)
                else:
                    self._engine._wake()
        except AuroralError as error:
            self._engine._fail(error)
        except Exception as error:  # the thread must not die silently
            self._engine._fail(RunError("INTERNAL", f"{type(error).__name__}: {error}"))
        self._engine._wake()
