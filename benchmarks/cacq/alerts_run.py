"""One system with a million rules, in a process of its own: `SYSTEM DIRECTORY WARM`.

Prints as JSON what registering, matching and memory cost; the directory holds what
`cacq_alerts.write` has written.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import auroral as au
from auroral.spark.session.session import start_session
from benchmarks.cacq.data import TICKS
from benchmarks.cacq.lab import matches_by_rule, peak_memory

FAMILIES = {
    "prices": "select sym, price from ticks where sym = :sym and price > :limit",
    "ranges": "select id, v from ticks where id = :id and v between :low and :high",
}
_SETTINGS = {"spark.sql.adaptive.enabled": "false", "spark.sql.ansi.enabled": "false"}
_HINTS = {"broadcast": "broadcast", "shuffled": "shuffle_hash", "sorted": "merge"}
Fired = list[pa.Table]
"""Of each family a table of `rule` and, if they are counted, `matches`."""


def alert_network(place: Path, results: str) -> au.Network:
    """Both families over one stream."""
    net = au.Network("alerts")
    net.stream("ticks", TICKS)
    for name, sql in FAMILIES.items():
        values = pq.read_table(place / f"{name}.parquet")
        net.family(name, sql, values=values, key="rule", results=results)  # type: ignore[arg-type]
    return net


def run_auroral(spark: SparkSession, place: Path, warm: int) -> dict[str, Any]:
    """Two engines one after the other: results kept and taken by family, and counted."""
    told: dict[str, Any] = {"register_s": 0.0, "runs": {}}
    for results, named in (("keep", "kept"), ("count", "counted")):
        started = time.perf_counter()
        train = _tables(place)[0].num_rows
        engine = au.Engine(
            alert_network(place, results), spark=spark, train=train, background=False
        )
        with engine:
            told["register_s"] = max(told["register_s"], time.perf_counter() - started)

            def step(table: pa.Table) -> Fired:
                engine.enqueue("ticks", table)  # noqa: B023
                engine.drain()  # noqa: B023
                return [engine.dequeue(name) for name in FAMILIES] if results == "keep" else []  # noqa: B023

            told["runs"][named] = measure(place, _tables(place), step, warm)
            if results == "count":
                counted = [matches_by_rule(engine, name) for name in FAMILIES]
                told["runs"][named] |= _judge(place, counted)
    return told


def run_plain(spark: SparkSession, place: Path, warm: int, way: str) -> dict[str, Any]:
    """A join of each batch with cached tables of rules; as little else as possible."""
    session = spark.newSession()
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    started = time.perf_counter()
    rules: list[DataFrame] = []
    for name, key in zip(FAMILIES, ("sym", "id"), strict=True):
        frame = session.read.parquet(str(place / f"{name}.parquet"))
        if way != "broadcast":
            # Rules stay where their keys are; only ticks travel.
            frame = frame.repartition(key)
        if way == "sorted":
            frame = frame.sortWithinPartitions(key)
        rules.append(frame.cache())
        rules[-1].count()
    told: dict[str, Any] = {"register_s": time.perf_counter() - started, "runs": {}}
    for named in ("kept", "counted"):

        def step(files: str) -> Fired:
            batch = session.read.parquet(files)
            return [
                frame.toArrow()
                for frame in joined(batch, rules, _HINTS[way], named == "counted")  # noqa: B023
            ]

        told["runs"][named] = measure(place, _directories(place), step, warm)
    return told


def joined(batch: DataFrame, rules: list[DataFrame], hint: str, counted: bool) -> list[DataFrame]:
    """The matches of a batch for each family, or how many each rule has."""
    prices, ranges = (frame.hint(hint) for frame in rules)
    found = [
        batch.select("sym", "price").join(prices, "sym").where("price > limit"),
        batch.select("id", "v").join(ranges, "id").where("v between low and high"),
    ]
    if counted:
        return [frame.groupBy("rule").agg(F.count("*").alias("matches")) for frame in found]
    kept = (("rule", "sym", "price"), ("rule", "id", "v"))
    return [frame.select(*names) for frame, names in zip(found, kept, strict=True)]


def measure(
    place: Path, trains: Sequence[Any], step: Callable[[Any], Fired], warm: int
) -> dict[str, Any]:
    """Let all trains pass; those after the first are timed, and the matches of all are judged."""
    rows = _tables(place)[0].num_rows
    seconds: list[float] = []
    found: list[Fired] = []
    for train in trains:
        started = time.perf_counter()
        found.append(step(train))
        seconds.append(time.perf_counter() - started)
    timed = seconds[warm:]
    told = {"rate": rows * len(timed) / sum(timed), "train_s": statistics.median(timed)}
    if not found[0]:
        return told
    families = [pa.concat_tables(parts) for parts in zip(*found, strict=True)]
    return told | _judge(place, families)


def _judge(place: Path, families: Fired) -> dict[str, float]:
    """Which part of the rules fired as often as numpy says, and how often all did per tuple."""
    expected = np.load(place / "expected.npy")
    totals = np.zeros_like(expected)
    for total, table in zip(totals, families, strict=True):
        weights = table["matches"].to_numpy() if "matches" in table.column_names else 1
        np.add.at(total, table["rule"].to_numpy(), weights)
    tuples = sum(table.num_rows for table in _tables(place))
    return {
        "agree": float((totals == expected).mean()),
        "matches_per_tuple": float(totals.sum() / tuples),
    }


def _directories(place: Path) -> list[str]:
    return sorted(str(path) for path in place.glob("ticks*"))


def _tables(place: Path) -> list[pa.Table]:
    return [pq.read_table(path) for path in _directories(place)]


def main() -> None:
    system, place, warm = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    spark = start_session("local[*]")
    with peak_memory() as peak:
        if system == "auroral":
            told = run_auroral(spark, place, warm)
        else:
            told = run_plain(spark, place, warm, system)
    told["memory_mb"] = peak
    print(json.dumps(told))  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main()
