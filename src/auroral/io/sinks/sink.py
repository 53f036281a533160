"""Where output rows go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

Moment = tuple[int, bytes]
"""When a row was emitted: arrival number, and its place within that moment."""


@dataclass(frozen=True)
class Delivery:
    """Rows of one output in order of emission; visible fields only."""

    output: str
    table: pa.Table
    first: Moment
    last: Moment


class Sink(Protocol):
    """One destination of an output. Positions are JSON.

    If a sink has an attribute `durable`, an engine that is to survive a power failure sets it:
    `write` may then return only when the rows are on the disk.
    """

    def open(self, position: Any | None) -> None:
        """Start anew if `position` is None, else cut away what was written after it."""

    def write(self, delivery: Delivery) -> Any:
        """Append, flush, and return the position after it."""

    def close(self) -> None:
        """Free what the sink holds; may be called twice."""
