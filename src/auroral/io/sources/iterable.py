"""A Python iterable as a source: dicts, tuples or Arrow batches, finite or endless."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from auroral.io.chunk import Chunk
from auroral.io.fit import Extra
from auroral.io.rows import RowReader
from auroral.network.types import Schema


class IterableSource:
    """Rows as the iterable yields them; None from it means nothing right now.

    To go on after a restart the rows already taken are passed over, so the iterable must yield
    the same rows again.
    """

    def __init__(
        self,
        stream: str,
        rows: Iterable[Any],
        schema: Schema | str | Mapping[str, str],
        *,
        progress_on: str | None = None,
        by: Sequence[str] = (),
        extra: Extra = "reject",
    ):
        self.stream = stream
        self._rows: Iterator[Any] = iter(rows)
        self._reader = RowReader(
            stream,
            Schema.parse(schema),
            progress_on=progress_on,
            by=by,
            place="iterable",
            extra=extra,
        )
        self._passed = 0
        self._timed: bool | None = None
        self._held: Chunk | None = None
        self._done = False

    def poll(self, limit: int) -> Chunk | None:
        """The next rows, fewer than `limit` where the iterable pauses or yields a batch."""
        if self._held is None:
            self._held = self._take(limit)
        if self._held is None:
            return None
        chunk, rest = self._held.split(limit)
        self._held = rest if rest.count or rest.dead else None
        return chunk

    @property
    def finite(self) -> bool:
        return True

    @property
    def exhausted(self) -> bool:
        return self._done and self._held is None

    def seek(self, offset: Any) -> None:
        skip = offset["skip"]
        while self._passed < skip and not self._done:
            chunk = self._take(1)
            if chunk is not None and chunk.offsets.end > skip:
                self._held = chunk.after(skip)

    def close(self) -> None:
        self._held, self._done = None, True

    def _take(self, limit: int) -> Chunk | None:
        """The next rows up to a batch or a pause; a batch comes as a chunk of its own."""
        rows: list[Any] = []
        while len(rows) < limit and not self._done:
            try:
                row = next(self._rows)
            except StopIteration:
                self._done = True
                break
            if row is None:
                break
            if isinstance(row, (pa.Table, pa.RecordBatch)) or hasattr(row, "iloc"):
                return self._both(self._chunk(rows) if rows else None, row)
            rows.append(row)
        return self._chunk(rows) if rows else None

    def _both(self, before: Chunk | None, batch: Any) -> Chunk:
        if before is None:
            return self._batch(batch)
        # The rows before a batch go first; the batch waits in front of the iterable.
        self._rows = _chain(batch, self._rows)
        return before

    def _batch(self, batch: Any) -> Chunk:
        return self._counted(self._reader.read(batch, skip=self._passed))

    def _chunk(self, rows: list[Any]) -> Chunk:
        if self._timed is None:
            first = rows[0]
            self._timed = isinstance(first, dict) and any(k.lower() == "_at" for k in first)
        timed = self._timed or None
        return self._counted(self._reader.read_rows(rows, skip=self._passed, timed=timed))

    def _counted(self, chunk: Chunk) -> Chunk:
        self._passed = chunk.offsets.end
        return replace(chunk, offsets=replace(chunk.offsets, base=None))


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
