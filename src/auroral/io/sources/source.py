"""Where tuples come from."""

from __future__ import annotations

from typing import Any, Protocol

from auroral.io.chunk import Chunk


class Source(Protocol):
    """One input of a stream.

    A source whose chunks tell the origin of each row (`Chunk.origins`), as partitions of a topic,
    has an attribute `partitioned` that is true; it opens its origins and lets them rest itself.

    If it has a method `retryable(error: Exception) -> bool` that is true of what `poll` or
    `exhausted` raised, it is asked again after a pause and goes on where it stood. Otherwise the
    run ends (`SOURCE_FAILED`).
    """

    stream: str

    def poll(self, limit: int) -> Chunk | None:
        """The next at most `limit` accepted rows; None if there is nothing right now.

        A chunk may hold dead letters only (`count` 0): records were passed, no row was accepted.
        """

    @property
    def finite(self) -> bool:
        """Whether it ends by itself."""

    @property
    def exhausted(self) -> bool:
        """Whether nothing will ever come again."""

    def seek(self, offset: Any) -> None:
        """Go on after a chunk whose `offset` was this; before the first `poll`."""

    def close(self) -> None:
        """Free what the source holds; may be called twice."""
