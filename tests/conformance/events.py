"""Streams of events that stateful boxes can chew on: ties, disorder, groups of all kinds."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from auroral import Delayed, Network, Ordered, Progress, Punctuated
from auroral.network.types import Type
from auroral.testing import punctuation

from .networks import BAD, Batch

EVENT = "k int, g string, z double, n int, x bigint, f double, d decimal(10,2), e date, t timestamp"
ORDERED = ("n", "x", "f", "d", "e", "t")
"""Fields that grow as time goes by, more or less."""
TABLE = "k int, label string, w double"
TABLE_ROWS: list[dict[str, Any]] = [
    {"k": 1, "label": "one", "w": 0.5},
    {"k": 2, "label": "a", "w": math.nan},
    {"k": 1, "label": "uno", "w": -0.0},
    {"k": None, "label": "b", "w": None},
]

_GROUPS: dict[str, list[Any]] = {
    "k": [None, 1, 1, 2, 2, 3],
    "g": [None, "a", "a", "b", "é"],
    "z": [None, math.nan, -0.0, 0.0, 0.1, 0.1, 0.2, 1e8, math.inf],
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def value(field: str, units: int) -> Any:
    """The value of an ordered field that stands for a number of units."""
    if field in ("n", "x"):
        return units
    if field == "f":
        return units * 0.5 if units % 3 else units * 0.1 + units * 0.4
    if field == "d":
        return Decimal(units) / 4
    if field == "e":
        return date(1970, 1, 1) + timedelta(days=units)
    return _EPOCH + timedelta(seconds=units)


def length(rng: Random, type: Type, *, least: int = 1, most: int = 6) -> Any:
    """A window's size, or a band, that suits a type."""
    units = rng.randint(least, most)
    if type.name in ("timestamp", "timestamp_ntz"):
        return f"{units} s"
    if type.name == "date":
        return f"{units} days"
    if type.name in ("double", "float"):
        return units * rng.choice([0.5, 0.3, 1.0])
    if type.name == "decimal":
        return units if type.scale < 2 else units * 0.25
    return units


def progress(rng: Random, liked: str) -> Progress | None:
    """What a stream promises: anything that can be declared, mostly of a field that is liked."""
    on = liked if rng.random() < 0.8 else rng.choice(ORDERED)
    by = rng.choice([(), (), (), (), ("g",), ("k",), ("z", "g")])
    units = rng.choice([0, 1, 2, 4])
    span: Any = {"f": units * 0.5, "d": units * 0.25}.get(on, units)
    heartbeat = rng.choice([None, None, None, 3, 0.5])
    delayed = Delayed(on, span, heartbeat=heartbeat, by=by)
    ordered = Ordered(on, heartbeat=heartbeat, by=by)
    return rng.choice([ordered, delayed, delayed, Punctuated(on, heartbeat=heartbeat, by=by), None])


def several(rng: Random, liked: str) -> list[Progress] | Progress | None:
    """What a stream promises of one field, or now and then of two."""
    first, second = progress(rng, liked), progress(rng, rng.choice(ORDERED))
    twice = first is not None and second is not None and first.punctuated and second.punctuated
    if rng.random() < 0.8 or first is None or second is None or first.on == second.on or twice:
        return first
    return [first, second]


def routing(
    rng: Random, declared: list[Progress] | Progress | None
) -> list[Progress] | Progress | None:
    """The same, but tuples below one of the marks, or any of them, leave the stream."""
    if declared is None:
        return None
    entries = declared if isinstance(declared, list) else [declared]
    chosen = rng.sample(range(len(entries)), rng.randint(1, len(entries)))
    routed = [
        one.model_copy(update={"below": "route"}) if at in chosen else one
        for at, one in enumerate(entries)
    ]
    return routed if isinstance(declared, list) else routed[0]


def clocked(net: Network) -> bool:
    """Whether the time that passes can make a network emit."""
    beats = any(p.heartbeat for s in net.streams.values() for p in s.progressing)
    return beats or any(box.times_out for box in net.boxes.values())


class Events:
    """Rows one after the other, the clock running on with them."""

    def __init__(self, rng: Random, net: Network):
        self._rng, self._net = rng, net
        self._timed = clocked(net)
        self._now = 0.0
        self._units = rng.choice([-3, 0, 5])
        self._pace = rng.choice([0.3, 0.6, 1.0])
        self._disorder = rng.choice([[0, 0, 0, -1], [0, 0, -1, -2, 1, -4, 3], [0, -3, -6, 2, -1]])
        self._groups = {
            name: values if rng.random() < 0.3 else rng.sample(values, 2)
            for name, values in _GROUPS.items()
        }

    def script(self, rows: int, drains: float = 0.3) -> list[Batch]:
        """Batches of about so many rows altogether."""
        rng, batches = self._rng, []
        while rows > 0:
            count = min(rng.choice([0, 1, 1, 2, 3, 5]), rows)
            stream = rng.choice(sorted(self._net.streams))
            declared = self._net.streams[stream].punctuated
            made = tuple(self._row(declared) for _ in range(count))
            batches.append(Batch(stream, made, rng.random() < drains))
            rows -= max(count, 1)
        return batches

    def _row(self, declared: Progress | None) -> dict[str, Any]:
        rng = self._rng
        if rng.random() < 0.02:
            return BAD
        self._units += rng.random() < self._pace
        if self._timed:
            self._now += rng.choice([0, 0, 0.5, 1, 4])
        at = {"_at": self._now} if self._timed else {}
        if declared and declared.punctuated and rng.random() < 0.4:
            promised = value(declared.on, self._units + rng.choice([-3, -2, -1, 0, 1]))
            group = {name: rng.choice(self._groups[name]) for name in declared.by}
            return {**punctuation(promised, **group), **at}
        row = {name: rng.choice(values) for name, values in self._groups.items()}
        jitter = rng.choice(self._disorder)
        for name in ORDERED:
            apart = rng.choice(self._disorder) if rng.random() < 0.2 else jitter
            row[name] = value(name, self._units + apart)
        return {**row, **self._odd(), **at}

    def _odd(self) -> dict[str, Any]:
        """Now and then a value that has no place in any order."""
        rng = self._rng
        if rng.random() > 0.05:
            return {}
        name = rng.choice(ORDERED)
        return {name: rng.choice([math.nan, math.inf, -math.inf, None]) if name == "f" else None}
