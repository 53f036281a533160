"""Whether the memory for queues has room for one train, as far as that can be told before a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from auroral.errors import NetworkError
from auroral.network.types import Schema

if TYPE_CHECKING:
    from auroral.network.network import Network

_MEGABYTE = 1 << 20


def require_room(network: Network, arcs: Mapping[str, Schema]) -> None:
    """Refuse memory for queues that has no room for a train as large as `train` allows.

    Tuples are taken to be as large as those of the widest arc.
    """
    memory, train = network.engine.memory_bytes, network.engine.train_tuples
    bounds = network.engine.train_bounds
    if bounds is not None and bounds.bytes is not None:
        if bounds.bytes > memory:
            problem = f"a train may have {bounds.memory!r}, but memory is {network.engine.memory!r}"
            place = network.place("engine", "train", "memory")
            hint = "a train of that size would have no room: give it less, or memory more"
            raise NetworkError("BAD_PARAMETER", problem, where=place, hint=hint)
        return  # the least of both bounds counts
    if train is None or not arcs:
        return
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
