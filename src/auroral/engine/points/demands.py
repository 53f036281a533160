"""What the boxes behind an arc demand of its key, so that other rows need not be read (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from auroral.boxes.filter import REST, Filter
from auroral.history.predicate import Interval, KeyPredicate, key_predicate
from auroral.ids import ArcId
from auroral.network.network import Network
from auroral.network.types import Schema
from auroral.sql.expressions.function_calls import called_of


def demanded_of_key(
    network: Network, arc: str, schema: Schema, key: str, ends: Sequence[str]
) -> KeyPredicate | None:
    """What all boxes that read an arc demand of one of its fields; None if one wants all rows.

    `ends` are arcs that are delivered or kept.
    Only filters whose rest nobody reads leave rows out. Python functions may fail on any tuple,
    which is told, so they get all.
    """
    read = {*ends, *(source for box in network.boxes.values() for source in box.sources())}
    if arc in ends:
        return None
    demanded: list[Interval] = []
    for name, box in network.boxes.items():
        if arc not in box.sources():
            continue
        if not isinstance(box, Filter) or box.where is None or str(ArcId(name, REST)) in read:
            return None
        if called_of(box.where, {function.lower() for function in network.functions}):
            return None
        found = key_predicate(box.where, schema, key)
        if found is None:
            return None
        demanded += found.intervals
    return KeyPredicate(schema.field(key).name, tuple(dict.fromkeys(demanded)))
