"""One of several sources of a stream: its rows carry its name as their origin."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.io.chunk import Chunk, Origins, Standing, of_events
from auroral.io.sources.source import Source
from auroral.progress.origins import ARRIVED, IDLE


class NamedSource:
    """A source whose rows say where they come from.

    After the last row of a source that ends, and when an endless one has had nothing for `idle_s`
    seconds, a row without a tuple says so: the stream's mark no longer waits for it.
    """

    def __init__(
        self,
        source: Source,
        name: str,
        schema: pa.Schema,
        *,
        idle_s: float | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ):
        self.stream = source.stream
        self.source = source
        self.name = name
        self.key = f"{source.stream}/{name}"
        self.partitioned = bool(getattr(source, "partitioned", False))
        """Whether the source tells origins itself: these get its name in front."""
        self.schema = schema
        self._idle_s = idle_s
        self._now_s = now_s
        self._last_s: float | None = None
        """When it brought something last, or was asked first; None while it is idle."""
        self._asked = False
        self._ended = False
        self._offset: Any = None

    def poll(self, limit: int) -> Chunk | None:
        if not self._asked:
            self._asked, self._last_s = True, self._now_s()
        chunk = None if self.source.exhausted else self.source.poll(limit)
        if chunk is not None:
            self._offset = chunk.offset
            self._last_s = self._now_s()
            return self._named(chunk)
        if self.partitioned:
            return None
        if self.source.exhausted and not self._ended:  # which may be known only after a poll
            self._ended = True
            return self._resting({"ended": self._offset})
        if not self._ended and self._is_idle():
            self._last_s = None
            return self._resting(self._offset)
        return None

    def _is_idle(self) -> bool:
        known = self._idle_s is not None and self._last_s is not None
        return known and self._now_s() - (self._last_s or 0) >= (self._idle_s or 0)

    def _named(self, chunk: Chunk) -> Chunk:
        if chunk.origins is not None:
            names = tuple(f"{self.name}/{name}" for name in chunk.origins.names)
            return replace(chunk, origins=replace(chunk.origins, names=names))
        codes = np.zeros(chunk.count, np.int32)
        arrived = np.full(chunk.count, ARRIVED, np.int8)
        return replace(chunk, origins=Origins((self.name,), codes, arrived))

    def _resting(self, position: Any) -> Chunk:
        """The row that lets the stream's mark go on without this source."""
        return of_events(self.schema, [self.name], IDLE, Standing.at(position))

    @property
    def finite(self) -> bool:
        return self.source.finite

    @property
    def exhausted(self) -> bool:
        return self.source.exhausted and (self._ended or self.partitioned)

    def seek(self, offset: Any) -> None:
        if "ended" in offset:
            self._ended, offset = True, offset["ended"]
        self._offset = offset
        if offset is not None:
            self.source.seek(offset)

    def close(self) -> None:
        self.source.close()


def unwrapped(source: Source) -> Source:
    """The source itself, without its name."""
    return source.source if isinstance(source, NamedSource) else source
