"""What a file format must offer, and what all of them share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from auroral.io.chunk import Chunk, RecordPositions


class FileReader(Protocol):
    """One file in one format. Bases are JSON."""

    timed: bool
    """Whether the rows carry `_at`."""

    def start(self) -> Any:
        """The base of the first record."""

    def chunks(self, base: Any) -> Iterator[Chunk]:
        """The records from `base` on, each chunk with a base of its own."""

    def arrivals(self) -> Iterator[np.ndarray]:
        """The seconds in `_at`, block by block; NaN where there is no number."""


def ascending(arrivals: Iterable[np.ndarray]) -> bool:
    """Whether arrival times never fall; NaN is passed over.

    >>> ascending([np.array([1, 2]), np.array([2, np.nan, 3])]), ascending([np.array([2, 1])])
    (True, False)
    """
    last = -np.inf
    for block in arrivals:
        seconds = block[~np.isnan(block)]
        if not len(seconds):
            continue
        if seconds[0] < last or (np.diff(seconds) < 0).any():
            return False
        last = seconds[-1]
    return True


def in_order_of_arrival(chunks: Iterable[Chunk], empty: pa.Schema) -> Chunk:
    """All of a file as one chunk sorted by `_at`, equal times in file order, dead letters first."""
    parts = list(chunks)
    dead = tuple(letter for part in parts for letter in part.dead)
    count = sum(part.count for part in parts)
    none = np.empty(0, dtype=np.int64)
    at_us = np.concatenate([none, *(p.at_us for p in parts if p.at_us is not None)])
    order = np.argsort(at_us, kind="stable")
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    starts = np.cumsum([0, *(part.count for part in parts)])
    positions = place[
        np.concatenate([none, *(p.positions + s for p, s in zip(parts, starts, strict=False))])
    ]
    tuples = np.argsort(positions)
    table = pa.concat_tables([empty.empty_table(), *(part.tuples for part in parts)])
    punctuations = [
        replace(p, position=int(place[p.position + start]))
        for part, start in zip(parts, starts, strict=False)
        for p in part.punctuations
    ]
    passed = np.arange(len(dead) + 1, len(dead) + count + 1, dtype=np.int64)
    return Chunk(
        count,
        table.take(pa.array(tuples)),
        positions[tuples],
        tuple(sorted(punctuations, key=lambda p: p.position)),
        at_us[order],
        dead,
        RecordPositions(
            "sorted", passed, len(dead) + count, np.arange(1, len(dead) + 1, dtype=np.int64)
        ),
    )
