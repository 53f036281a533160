"""Whether the memory for queues has room for one train, as far as that can be told before a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from auroral.errors import NetworkError
from auroral.network.types import Schema

if TYPE_CHECKING:
    from auroral.network.network import Network

_MEGABYTE = 1 << 20


def require_room(network: Network, arcs: Mapping[str, Schema], train: int | None) -> None:
    """Refuse memory for queues that has no room for a train of so many tuples; None: of any number.

    Tuples are taken to be as large as those of the widest arc.
    """
    if train is None or not arcs:
        return
    memory = network.engine.memory_bytes
    widest = max(arcs, key=lambda arc: arcs[arc].tuple_bytes)
    each = arcs[widest].tuple_bytes
    if train * each <= memory:
        return
    wanted_mb = -(-train * each // _MEGABYTE)
    problem = (
        f"a train of {train:,} tuples takes about {wanted_mb:,} MB ({each} bytes for each tuple of"
        f" {widest}), but memory is {network.engine.memory!r}"
    )
    hint = f"memory: {wanted_mb} MB has room for it, or train: {memory // each} fits"
    place = network.place("engine", "train")
    raise NetworkError("BAD_PARAMETER", problem, where=place, hint=hint)
