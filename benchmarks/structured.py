"""Plain Structured Streaming doing the same work on the same files and cores."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

_PROVIDER = "org.apache.spark.sql.execution.streaming.state."
STATE_STORES = {
    "default": _PROVIDER + "HDFSBackedStateStoreProvider",
    "rocksdb": _PROVIDER + "RocksDBStateStoreProvider",
}
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}

Query = Callable[[SparkSession], DataFrame]


@dataclass(frozen=True)
class Batches:
    """The micro-batches of one run that had input."""

    store: str
    seconds: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    """Rows in the state stores."""
    results: list[pa.Table] = field(default_factory=list)

    def rate(self, warm: int) -> float:
        """Tuples per second of the batches after the first ones."""
        return sum(self.rows[warm:]) / sum(self.seconds[warm:])

    def median_s(self, warm: int) -> float:
        return statistics.median(self.seconds[warm:])


def read_files(session: SparkSession, place: str, schema: str, files: int) -> DataFrame:
    """A stream of Parquet files, so many to a micro-batch."""
    return session.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(place)


def run_query(spark: SparkSession, query: Query, store: str = "default") -> Batches:
    """Run a query over all files, collecting what it gives at the driver."""
    session = spark.newSession()
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    session.conf.set("spark.sql.streaming.stateStore.providerClass", STATE_STORES[store])
    done = Batches(store)

    def collect(frame: DataFrame, _number: int) -> None:
        done.results.append(frame.toArrow())

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint:
        writer = query(session).writeStream.outputMode("append").foreachBatch(collect)
        running = writer.trigger(availableNow=True).option("checkpointLocation", checkpoint).start()
        try:
            running.awaitTermination()
        finally:
            running.stop()
        for progress in running.recentProgress:
            if progress.numInputRows > 0:
                done.seconds.append(progress.durationMs["triggerExecution"] / 1000)
                done.rows.append(progress.numInputRows)
                done.held.append(sum(op.numRowsTotal for op in progress.stateOperators))
    _unload(spark)
    return done


def _unload(spark: SparkSession) -> None:
    """Free the state that Spark keeps of ended queries, which would burden what runs next."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    jvm.java.lang.System.gc()


def faster_store(run: Callable[[str], Batches], warm: int) -> str:
    """The state store whose median micro-batch is the shorter."""
    return min(STATE_STORES, key=lambda store: run(store).median_s(warm))


def windowed_count(place: str, schema: str, files: int, window: str, delay: str) -> Query:
    """Count per source and destination over tumbling windows."""

    def query(session: SparkSession) -> DataFrame:
        stream = read_files(session, place, schema, files).withWatermark("ts", delay)
        counted = stream.groupBy(F.window("ts", window), "srcIP", "destIP").agg(
            F.count("*").alias("cnt")
        )
        return counted.select(F.col("window.start").alias("ts"), "srcIP", "destIP", "cnt")

    return query


def band_join(places: Mapping[str, str], schema: str, files: int, band: str) -> Query:
    """Join two streams on their key where their times are at most `band` apart."""

    def query(session: SparkSession) -> DataFrame:
        sides = [
            read_files(session, places[name], schema, files)
            .select(*(F.col(c).alias(f"{name}_{c}") for c in ("key", "value", "ts")))
            .withWatermark(f"{name}_ts", "0 seconds")
            for name in ("l", "r")
        ]
        near = F.expr(
            f"l_key = r_key and r_ts >= l_ts - interval {band} and r_ts <= l_ts + interval {band}"
        )
        return sides[0].join(sides[1], near)

    return query
