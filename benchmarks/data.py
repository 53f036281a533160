"""Data of the experiments: packet headers with a known number of groups, in known disorder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SECOND_US = 1_000_000
START_US = 1_699_999_980 * SECOND_US
"""When every stream begins: a full minute."""
PACKETS = "srcIP bigint, destIP bigint, ts timestamp"
READINGS = "key bigint, value bigint, ts timestamp"
_TIME = pa.timestamp("us", "UTC")
_NETWORK = 10 << 24

Batch = tuple[str, pa.Table]
"""Tuples of one stream that arrive together."""
Train = Sequence[Batch]


def packets(
    count: int,
    groups: int,
    *,
    seed: int,
    first_us: int = START_US,
    span_us: int,
    jitter_us: int = 0,
) -> pa.Table:
    """Packets that arrive evenly over a span, each up to `jitter_us` after its timestamp."""
    random = np.random.default_rng(seed)
    group = random.integers(0, groups, count)
    side = max(round(groups**0.5), 1)
    columns = {"srcIP": _NETWORK + group // side, "destIP": _NETWORK + group % side}
    return pa.table(columns | {"ts": _times(random, count, first_us, span_us, jitter_us)})


def readings(
    count: int, keys: int, *, seed: int, first_us: int = START_US, span_us: int, jitter_us: int = 0
) -> pa.Table:
    """Keyed values that arrive evenly over a span."""
    random = np.random.default_rng(seed)
    columns = {"key": random.integers(0, keys, count), "value": random.integers(0, 1000, count)}
    return pa.table(columns | {"ts": _times(random, count, first_us, span_us, jitter_us)})


def _times(
    random: np.random.Generator, count: int, first_us: int, span_us: int, jitter_us: int
) -> pa.Array:
    arrived = first_us + (np.arange(count) * span_us) // max(count, 1)
    if jitter_us:
        arrived = arrived - random.integers(0, jitter_us, count)
    return pa.array(arrived).cast(_TIME)


def packet_trains(
    trains: int,
    rows: int,
    groups: int,
    *,
    span_us: int,
    jitter_us: int = 0,
    stream: str = "m",
    seed: int = 7,
) -> list[list[Batch]]:
    """Trains of packets, one after the other in time."""
    return [
        [
            (
                stream,
                packets(
                    rows,
                    groups,
                    seed=seed + number,
                    first_us=START_US + jitter_us + number * span_us,
                    span_us=span_us,
                    jitter_us=jitter_us,
                ),
            )
        ]
        for number in range(trains)
    ]


def reading_trains(
    trains: int, rows: int, keys: int, *, streams: Sequence[str], span_us: int, seed: int = 11
) -> list[list[Batch]]:
    """Trains with a batch of every stream, all over the same span of time."""
    return [
        [
            (
                stream,
                readings(
                    rows,
                    keys,
                    seed=seed + number * len(streams) + place,
                    first_us=START_US + number * span_us,
                    span_us=span_us,
                ),
            )
            for place, stream in enumerate(streams)
        ]
        for number in range(trains)
    ]


def link(
    seconds: int, rate_per_s: int, groups: int, *, seed: int, whole_seconds: bool = False
) -> list[pa.Table]:
    """The packets of one network link, second by second; their times may be whole seconds."""
    return [
        packets(
            rate_per_s,
            groups,
            seed=seed * 100_003 + second,
            first_us=START_US + second * SECOND_US,
            span_us=1 if whole_seconds else SECOND_US,
        )
        for second in range(seconds)
    ]


def arrivals(
    links: Mapping[str, Sequence[pa.Table]], delays_s: Mapping[str, int], train_s: int
) -> list[list[Batch]]:
    """What arrives in every `train_s` seconds if some links are late, in order of arrival."""
    length = max(len(tables) for tables in links.values())
    trains: list[list[Batch]] = []
    for first in range(0, length, train_s):
        train: list[Batch] = []
        for second in range(first, min(first + train_s, length)):
            for name, tables in links.items():
                sent = second - delays_s.get(name, 0)
                if 0 <= sent < len(tables):
                    train.append((name, tables[sent]))
        trains.append(train)
    return trains


def size(train: Train) -> int:
    """The tuples of a train."""
    return sum(table.num_rows for _, table in train)


def write_files(trains: Sequence[Train], place: Path, parts: int) -> dict[str, str]:
    """Write every train as `parts` files per stream; returns the directory of each stream.

    Spark's file source takes files by age, so each train's are a second younger than the last's.
    """
    places: dict[str, str] = {}
    for number, train in enumerate(trains):
        for stream, table in train:
            directory = place / stream
            directory.mkdir(parents=True, exist_ok=True)
            places[stream] = str(directory)
            rows = -(-table.num_rows // parts)
            for part in range(parts):
                path = directory / f"{number:05d}-{part}.parquet"
                pq.write_table(table.slice(part * rows, rows), path)
                os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))
    return places
