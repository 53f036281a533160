"""A query that was attached for another process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import pyarrow as pa

from auroral.engine.parts import EngineParts


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


class AttachingEngine(Protocol):
    """The calls of an engine that another process makes through a socket."""

    def dequeue(self, output: str) -> pa.Table: ...

    def wait(self, timeout_s: float) -> None: ...

    def detach(self, name: str) -> None: ...


def attach_for_a_while(
    engine: AttachingEngine, parts: EngineParts, point: str, sql: str, follow: bool
) -> LiveAttachment:
    """Attach a query that another process asks for; with `follow` for what flows, too."""
    engine.wait(0.0)  # it runs, and is well
    if not follow:
        parts.attaching.on_demand.require_history(point)
    name = parts.attaching.attach(point, sql, None, None, lasting=False)
    moment = parts.ingest.next_moment
    return LiveAttachment(
        take=partial(engine.dequeue, name),
        wait=engine.wait,
        detach=partial(engine.detach, name),
        caught_up=lambda: parts.attachments.has_reached(name, moment),
    )
