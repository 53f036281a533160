"""Spark DataFrames as input: batches, and any `readStream` through `foreachBatch`."""

from __future__ import annotations

import json
import shutil
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from auroral.disk import disk_errors, make_directory, sync_tree
from auroral.errors import AuroralError, RunError, UsageError
from auroral.io.open import is_native
from auroral.io.sources.source import Source
from auroral.network.environment import sources_of
from auroral.network.network import Network
from auroral.spark.session.causes import FAILURES, reason
from auroral.spark.session.streams import JSON_COLUMN, declared_stream
from auroral.storage import Store

if TYPE_CHECKING:
    from auroral.engine.api import Engine

_SMALL_BYTES = 64 << 20
_BATCH_ROWS = 1_000_000


@contextmanager
def translate_stream_errors(stream: str) -> Iterator[None]:
    """Failures of Spark as an error that says of which stream."""
    try:
        yield
    except FAILURES as error:
        raise RunError("SPARK_FAILED", reason(error), where=f"stream {stream}") from error
    except TypeError as error:  # arguments that Spark's Python does not have
        raise UsageError("BAD_CALL", str(error), where=f"stream {stream}") from None


def rows_of(
    frame: DataFrame, directory: Path, stream: str, *, whole: bool = False
) -> Iterator[pa.Table]:
    """A DataFrame's rows: at once if small or `whole`, else by way of files that Spark writes."""
    with translate_stream_errors(stream):
        if frame.isStreaming:
            raise UsageError(
                "BAD_CALL",
                "expected a DataFrame with an end, found a streaming one",
                where=f"stream {stream}",
                hint="pass it to read_stream",
            )
        size = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
        small = frame.toArrow() if whole or size <= _SMALL_BYTES else None
    if small is not None:
        yield small
        return
    target = directory / f"frame-{uuid.uuid4().hex}"
    try:
        with translate_stream_errors(stream):
            frame.write.parquet(str(target))
        for part in sorted(target.glob("part-*.parquet")):
            for batch in pq.ParquetFile(part).iter_batches(_BATCH_ROWS):
                yield pa.Table.from_batches([batch])
    finally:
        shutil.rmtree(target, ignore_errors=True)


def _parsed(text: str | None) -> Any:
    """A row from JSON; what is no JSON stays text, which fits no stream: a dead letter."""
    try:
        return json.loads(text or "")
    except ValueError:
        return text


class StreamReader:
    """A Structured Streaming query whose micro-batches go into an input log, exactly once.

    A micro-batch and its number are committed together; a batch that Spark repeats after a crash
    is recognised by its number.
    """

    def __init__(
        self,
        engine: Engine,
        stream: str,
        frame: DataFrame,
        store: Store,
        *,
        trigger: Mapping[str, Any],
    ):
        self._engine = engine
        self._stream = stream
        self._store = store
        self._error: AuroralError | None = None
        self._checkpoint = store.directory / "checkpoints" / stream
        self._synced = 0.0
        """Files of the checkpoint that are older were synced."""
        with disk_errors(self._checkpoint):
            make_directory(self._checkpoint.parent, sync=store.power)
        with translate_stream_errors(stream):
            if not frame.isStreaming:
                raise UsageError(
                    "BAD_CALL",
                    "expected a streaming DataFrame, of spark.readStream",
                    where=f"stream {stream}",
                    hint="pass others to enqueue",
                )
            writer = frame.writeStream.foreachBatch(self._take)
            writer = writer.option("checkpointLocation", str(self._checkpoint))
            if trigger:
                writer = writer.trigger(**trigger)
            self.query: StreamingQuery = writer.start()

    def drain(self, timeout_s: float | None) -> bool:
        """Wait until everything the source has now is in the log; False if that takes longer."""
        # Spark waits without a limit, so that a thread has to wait for it.
        waiting = threading.Thread(target=self._await, daemon=True)
        waiting.start()
        waiting.join(timeout_s)
        self.require_alive()
        return not waiting.is_alive()

    def _await(self) -> None:
        with suppress(*FAILURES):  # what ended the query is told by the query
            if self.query.isActive:
                self.query.processAllAvailable()

    def stop(self) -> None:
        with suppress(*FAILURES):  # it has ended, or Spark has
            self.query.stop()

    @property
    def active(self) -> bool:
        """Whether the query still runs."""
        with translate_stream_errors(self._stream):
            return bool(self.query.isActive)

    def require_alive(self) -> None:
        """Raise what ended the query, if it failed."""
        if self._error:
            raise self._error
        where = f"stream {self._stream}"
        try:
            failure = self.query.exception()
        except FAILURES as error:
            raise RunError("SPARK_FAILED", reason(error), where=where) from error
        if failure is not None:
            raise RunError("SOURCE_FAILED", reason(failure), where=where)

    def _take(self, batch: DataFrame, number: int) -> None:
        try:
            taken = self._store.manifest.source(self._stream)
            if taken is not None and number <= taken["batch"]:
                return
            rows: Any = batch.toArrow()
            if rows.column_names == [JSON_COLUMN]:
                rows = [_parsed(text) for text in rows[JSON_COLUMN].to_pylist()]
            if self._store.power:
                # Spark must find the same batch under this number again.
                since, self._synced = self._synced, time.time() - 60
                sync_tree(self._checkpoint, since)
            self._engine.enqueue(self._stream, rows, position={"batch": number})
        except AuroralError as error:
            self._error = error
            raise


class StreamReaders:
    """The Structured Streaming queries that feed an engine."""

    def __init__(self) -> None:
        self._all: list[StreamReader] = []

    def add(self, reader: StreamReader) -> StreamReader:
        self._all.append(reader)
        return reader

    def drain(self, since: float, timeout_s: float | None) -> bool:
        """Wait until what the sources have now is in the logs; False if that takes longer.

        The time counts from `since`, of the monotonic clock.
        """
        for reader in self._all:
            left = None if timeout_s is None else max(since + timeout_s - time.monotonic(), 0.0)
            if not reader.drain(left):
                return False
        return True

    def are_active(self) -> bool:
        """Whether some still run; one that has failed raises."""
        found = any(reader.active for reader in self._all)
        for reader in self._all:  # after that: one that fails in between has not ended
            reader.require_alive()
        return found

    def stop(self) -> None:
        for reader in self._all:
            reader.stop()


def declared_frames(
    network: Network, bound: Sequence[Source], spark: SparkSession
) -> Iterator[tuple[str, DataFrame]]:
    """The streams whose declared source is one of Spark's connectors, unless they have another."""
    taken = {source.stream for source in bound}
    for name, stream in network.streams.items():
        for spec in sources_of(network, name) if name not in taken else ():
            if not is_native(spec):
                yield name, declared_stream(spark, name, spec, stream.schema_)
