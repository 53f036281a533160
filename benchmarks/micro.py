"""The microbenchmarks of [4 Table 2], and plain Structured Streaming doing the same filter.

Tuples are 64 bytes: eight bigints. Every network gives out what it takes in, except for the
filter that passes a tenth. Times are per tuple from `enqueue` until `dequeue` has everything.
"""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import auroral as au
from auroral.spark.session.session import start_session
from benchmarks.report import Report

_FIELDS = tuple("abcdefgh")
_SCHEMA = ", ".join(f"{name} bigint" for name in _FIELDS)
_SEED = 7
_TENTH = "a < 100"


def micro(*, quick: bool = False) -> Report:
    """Run everything; about four minutes, `quick` about one."""
    report = Report("micro")
    spark = start_session("local[*]")
    scale = 0.1 if quick else 1.0
    _table_2(report, spark, scale)
    _throughput(report, spark, scale)
    _latency(report, spark, scale)
    _many_steps(report, spark, scale)
    _start(report)
    return report


def tuples(count: int, seed: int = _SEED) -> pa.Table:
    """Random 64-byte tuples; `a` is uniform in 0..999."""
    random = np.random.default_rng(seed)
    columns = {"a": random.integers(0, 1000, count)}
    columns |= {name: random.integers(0, 2**40, count) for name in _FIELDS[1:]}
    return pa.table(columns)


def network(query: str, outputs: int = 1) -> au.Network:
    """The catalogs of the paper; `tenth` is the filter that passes 10 %."""
    net = au.Network(query.replace("-", "_").lower())
    arc = net.stream("s", _SCHEMA)
    if query == "FILTER":
        arc = arc.filter("a >= 0")
    elif query == "tenth":
        arc = arc.filter(_TENTH)
    for number in range({"UNION": 1, "UNION-CHAIN": 5}.get(query, 0)):
        arc = arc.union(net.stream(f"empty{number}", _SCHEMA))
    for number in range(outputs):
        net.output(f"out{number}", arc)
    return net


def pump(engine: au.Engine, batch: pa.Table, batches: int, outputs: int) -> float:
    """Enqueue, drain and dequeue; returns seconds per tuple."""
    started = time.perf_counter()
    for _ in range(batches):
        engine.enqueue("s", batch)
    engine.drain()
    for number in range(outputs):
        engine.dequeue(f"out{number}")
    return float((time.perf_counter() - started) / (batches * batch.num_rows))


def _table_2(report: Report, spark: SparkSession, scale: float) -> None:
    section = report.section(
        "Table 2: average time per tuple", "query", "dequeuers", "batch", "tuples", "ns_per_tuple"
    )
    cases = [("NULL", 0, b) for b in (1, 10, 100, 1_000)]
    cases += [("NULL", 1, b) for b in (1, 10, 100, 1_000, 100_000, 1_000_000)]
    cases += [("NULL", d, 1_000_000) for d in (5, 10)]
    sizes = (1, 1_000, 10_000, 100_000, 1_000_000)
    cases += [(q, 1, b) for q in ("FILTER", "UNION", "UNION-CHAIN") for b in sizes]
    for query, outputs, size in cases:
        # As many tuples as a second or two allow: two million in the paper, fewer in tiny batches.
        count = int(
            min(2_000_000, {1: 5_000, 10: 50_000, 100: 200_000}.get(size, 2_000_000)) * scale
        )
        batches = max(count // size, 1)
        batch = tuples(size)
        with au.Engine(network(query, outputs), spark=spark) as engine:
            pump(engine, batch, min(batches, 2), outputs)
            best = min(
                pump(engine, batch, batches, outputs) for _ in range(3 if size >= 1000 else 1)
            )
        section.rows.append((query, outputs, size, batches * size, round(best * 1e9)))
    report.bar("five chained unions / one, trains of 1 M", _chain_ratio(spark, scale), most=1.2)


def _chain_ratio(spark: SparkSession, scale: float) -> float:
    """Five unions in a chain against one, in turn so that both see the same machine."""
    batch = tuples(1_000_000)
    seconds: dict[str, list[float]] = {"UNION": [], "UNION-CHAIN": []}
    with (
        au.Engine(network("UNION"), spark=spark) as one,
        au.Engine(network("UNION-CHAIN"), spark=spark) as chain,
    ):
        for number in range(max(int(12 * scale), 5)):
            for query, engine in (("UNION", one), ("UNION-CHAIN", chain)):
                measured = pump(engine, batch, 1, 1)
                if number >= 2:
                    seconds[query].append(measured)
    return statistics.median(seconds["UNION-CHAIN"]) / statistics.median(seconds["UNION"])


def _throughput(report: Report, spark: SparkSession, scale: float) -> None:
    section = report.section(
        "Filter passing 10 %, trains of 1 M", "system", "tuples", "M_tuples_per_s"
    )
    batch = tuples(1_000_000)
    count = max(int(8 * scale), 2)
    ours: list[float] = []
    theirs: list[float] = []
    with au.Engine(network("tenth"), spark=spark) as engine, tempfile.TemporaryDirectory() as place:
        for number in range(count):
            pq.write_table(batch, f"{place}/{number}.parquet")
        pump(engine, batch, 2, 1)
        _plain_seconds(spark, place, 1)
        for _ in range(3):
            ours.append(1 / pump(engine, batch, count, 1))
            seconds = _plain_seconds(spark, place, 1)
            theirs.append(batch.num_rows / statistics.median(seconds[1:]))
    mine, other = statistics.median(ours), statistics.median(theirs)
    section.rows.append(("Auroral, enqueue to dequeue", count * batch.num_rows, mine / 1e6))
    section.rows.append(
        ("plain Structured Streaming, files to driver", count * batch.num_rows, other / 1e6)
    )
    report.bar("M tuples/s from enqueue of Arrow to dequeue", mine / 1e6, least=2.0)
    report.bar("throughput / plain Structured Streaming", mine / other, least=1.0)


def _latency(report: Report, spark: SparkSession, scale: float) -> None:
    section = report.section("Trains of 1,000 tuples", "what", "median_ms", "p90_ms")
    rounds = max(int(100 * scale), 20)
    batch = tuples(1_000)
    ours: list[float] = []
    minimal: list[float] = []
    with au.Engine(network("tenth"), spark=spark) as engine, tempfile.TemporaryDirectory() as place:
        for number in range(rounds + 5):
            pq.write_table(batch, f"{place}/{number}.parquet")
        for number in range(rounds + 20):
            mine = pump(engine, batch, 1, 1) * batch.num_rows
            started = time.perf_counter()
            spark.range(1_000).where("id % 10 = 0").toArrow()
            smallest = time.perf_counter() - started
            if number >= 20:
                ours.append(mine)
                minimal.append(smallest)
        plain = _plain_seconds(spark, place, 1)[5:]
    for name, times in (
        ("Auroral step, enqueue to dequeue", ours),
        ("minimal Spark job (range, filter, toArrow)", minimal),
        ("plain Structured Streaming micro-batch", plain),
    ):
        ordered = sorted(times)
        section.rows.append(
            (name, statistics.median(times) * 1e3, ordered[int(len(ordered) * 0.9)] * 1e3)
        )
    mine_median = statistics.median(ours)
    report.bar("step / minimal Spark job", mine_median / statistics.median(minimal), most=1.5)
    report.bar("step / plain micro-batch", mine_median / statistics.median(plain), most=0.7)


def _plain_seconds(spark: SparkSession, place: str, files: int) -> list[float]:
    """Seconds of each micro-batch of the same filter over files, collected at the driver."""
    stream = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", files).parquet(place)
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = stream.where(_TENTH).writeStream.foreachBatch(_collect)
        query = writer.trigger(availableNow=True).option("checkpointLocation", checkpoint).start()
        seconds: list[float] = []
        seen: set[int] = set()
        while query.isActive:
            _note_progress(query, seconds, seen)
            query.awaitTermination(1)
        _note_progress(query, seconds, seen)
    return seconds


def _note_progress(query: Any, seconds: list[float], seen: set[int]) -> None:
    for progress in query.recentProgress:
        if progress.batchId not in seen and progress.numInputRows > 0:
            seen.add(progress.batchId)
            seconds.append(progress.durationMs["triggerExecution"] / 1000)


def _collect(frame: DataFrame, _number: int) -> None:
    frame.toArrow()


def _many_steps(report: Report, spark: SparkSession, scale: float) -> None:
    steps = max(int(1_000 * scale), 200)
    section = report.section(
        f"{steps:,} steps in a row", "quarter", "median_ms", "python_mb", "jvm_mb"
    )
    batch = tuples(1_000)
    medians: list[float] = []
    memory: list[float] = []
    with au.Engine(network("tenth"), spark=spark) as engine:
        for _ in range(50):
            pump(engine, batch, 1, 1)
        for quarter in range(4):
            times = [pump(engine, batch, 1, 1) * batch.num_rows for _ in range(steps // 4)]
            medians.append(statistics.median(times))
            python, jvm = _memory_mb(spark)
            memory.append(python + jvm)
            section.rows.append((quarter + 1, medians[-1] * 1e3, python, jvm))
    report.bar("step time, last quarter / first", medians[-1] / medians[0], most=1.2)
    report.bar("memory, last quarter / first", memory[-1] / memory[0], most=1.1)


def _memory_mb(spark: SparkSession) -> tuple[float, float]:
    """What is in use after a collection: our resident memory, the JVM's heap."""
    gc.collect()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    heap = (runtime.totalMemory() - runtime.freeMemory()) / 2**20
    status = Path("/proc/self/status")
    resident = 0.0
    if status.exists():
        line = next(n for n in status.read_text().splitlines() if n.startswith("VmRSS"))
        resident = int(line.split()[1]) / 1024
    return resident, heap


_START = """
import time
began = time.perf_counter()
import auroral as au
net = au.Network("start")
net.output("o", net.stream("s", "a int").filter("a > 0"))
engine = au.Engine(net)
imported = time.perf_counter()
from auroral.spark.session.session import start_session
spark = start_session("local[*]")
session = time.perf_counter()
engine.start()
ready = time.perf_counter()
engine.shutdown()
print(session - began, ready - began)
"""


def _start(report: Report) -> None:
    section = report.section("Start in a new process", "what", "seconds")
    done = subprocess.run(
        [sys.executable, "-c", _START], capture_output=True, text=True, check=True
    )
    session, ready = (float(word) for word in done.stdout.split()[-2:])
    section.rows.append(("until Spark's session is there", session))
    section.rows.append(("until the engine is ready", ready))
    report.bar("engine ready / Spark ready", ready / session, most=1.5)
