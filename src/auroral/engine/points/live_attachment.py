"""A query that was attached for another process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class LiveAttachment:
    """What the other process may do with it."""

    take: Callable[[], pa.Table]
    """What has come since the last call."""
    wait: Callable[[float], None]
    """Wait until something has happened, for so many seconds at most."""
    detach: Callable[[], None]
    """Leave nothing of it."""
    caught_up: Callable[[], bool]
    """Whether everything before the moment of attaching is there."""

    @property
    def has_caught_up(self) -> bool:
        return self.caught_up()
