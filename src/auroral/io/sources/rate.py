"""Made-up rows at a steady rate, the same for the same seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.errors import UsageError, closest, list_existing
from auroral.io.chunk import Chunk
from auroral.io.sources.generators import generator
from auroral.network.types import Schema


class RateSource:
    """`rows_per_s` rows a second, `rows` in all if given; row i depends on i and the seed only.

    >>> clock = iter([0.0, 0.5])
    >>> numbers = Schema.parse("n int")
    >>> source = RateSource("s", numbers, rows_per_s=4, now=lambda: next(clock))
    >>> source.poll(100).tuples.to_pylist()
    [{'n': 0}, {'n': 1}]
    """

    def __init__(
        self,
        stream: str,
        schema: Schema,
        *,
        rows_per_s: float,
        rows: int | None = None,
        fields: Mapping[str, Any] | None = None,
        seed: int = 0,
        now: Callable[[], float] = time.monotonic,
    ):
        if not rows_per_s > 0:
            raise UsageError("BAD_OPTION", f"expected rows_per_second > 0, found {rows_per_s}")
        self.stream = stream
        self.schema = schema
        self.rows_per_s = rows_per_s
        self.rows = rows
        self._arrow = schema.arrow()
        fields = fields or {}
        for name in fields:
            if name not in schema:
                raise UsageError(
                    "UNKNOWN_FIELD",
                    f"there is no field {name}; {list_existing(schema.names)}",
                    hint=closest(name, schema.names),
                )
        specs = {name.lower(): spec for name, spec in fields.items()}
        self._generators = [
            generator(field, specs.get(field.name.lower()), seed * 1000 + 2 * i, rows_per_s)
            for i, field in enumerate(schema)
        ]
        self._now = now
        self._start: float | None = None
        self._taken = 0

    def poll(self, limit: int) -> Chunk | None:
        """The rows that are due by now; time counts from the first call."""
        if self._start is None:
            self._start = self._now() - self._taken / self.rows_per_s
        due = int((self._now() - self._start) * self.rows_per_s + 1e-9)
        if self.rows is not None:
            due = min(due, self.rows)
        count = min(limit, due - self._taken)
        if count <= 0:
            return None
        numbers = np.arange(self._taken, self._taken + count, dtype=np.int64)
        columns = [generate(numbers) for generate in self._generators]
        table = pa.Table.from_arrays(columns, schema=self._arrow)
        chunk = Chunk.of_tuples(table, base=None, skip=self._taken)
        self._taken += count
        return chunk

    @property
    def finite(self) -> bool:
        return self.rows is not None

    @property
    def exhausted(self) -> bool:
        return self.rows is not None and self._taken >= self.rows

    def seek(self, offset: Any) -> None:
        """Go on at the row after; the time between does not count."""
        self._taken = offset["skip"]
        self._start = None

    def close(self) -> None:
        """Nothing is held."""
