"""What an engine promises its caller: it comes back in time, and speaks our words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import auroral as au
from auroral.engine.ingest.streaming import StreamReader
from auroral.errors import AuroralError, RunError, UsageError
from auroral.spark.session.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def network(source: dict[str, Any] | None = None) -> au.Network:
    net = au.Network("n")
    net.output("o", net.stream("s", "value bigint", source=source).filter("value >= 0"))
    return net


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(AuroralError) as failure:
        call()
    assert "py4j" not in str(failure.value)
    return failure.value.code


def test_drain_keeps_its_time_with_a_stream_that_never_pauses(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whether Spark waits for ever depends on when a stream brings rows; here it does.
    over = threading.Event()
    monkeypatch.setattr(StreamReader, "_await", lambda _self: over.wait())
    with au.Engine(network(), spark=spark) as engine:
        engine.read_stream("s", spark.readStream.format("rate").load().select("value"))
        with pytest.raises(RunError, match=r"TIMEOUT: not drained within 0\.5 s"):
            engine.drain(timeout_s=0.5)
        over.set()


def test_drain_keeps_its_time_without_threads(spark: SparkSession) -> None:
    source = {"format": "rate", "rows_per_second": 1_000_000_000}
    with (
        au.Engine(network(source), spark=spark, background=False) as engine,
        pytest.raises(RunError, match=r"TIMEOUT: not drained within 0\.1 s"),
    ):
        engine.drain(timeout_s=0.1)


def failing() -> Iterator[Any]:
    yield (1,)
    raise OSError("unplugged")


@pytest.mark.parametrize("background", [True, False])
def test_a_source_that_raises_is_named(spark: SparkSession, background: bool) -> None:
    engine = au.Engine(network(), spark=spark, background=background)
    engine.bind_source(au.IterableSource("s", failing(), "value bigint"))
    engine.start()
    try:
        with pytest.raises(RunError) as failure:
            engine.drain(timeout_s=60)
    finally:
        engine.shutdown()
    assert failure.value.code == "SOURCE_FAILED"
    assert failure.value.where == "stream s, source IterableSource"
    assert "OSError: unplugged" in failure.value.message


def test_sparks_own_errors_are_told_in_our_words(spark: SparkSession) -> None:
    bad = spark.range(3).selectExpr("raise_error('no good') AS value")
    live = spark.readStream.format("rate").load().select("value")
    with au.Engine(network(), spark=spark) as engine:
        assert code_of(lambda: engine.enqueue("s", bad)) == "SPARK_FAILED"
        assert code_of(lambda: engine.enqueue("s", live)) == "BAD_CALL"
        assert code_of(lambda: engine.read_stream("s", spark.range(3))) == "BAD_CALL"
        assert code_of(lambda: engine.read_stream("t", live)) == "UNKNOWN_STREAM"
        trigger = {"now": True}
        assert code_of(lambda: engine.read_stream("s", live, trigger=trigger)) == "BAD_CALL"
        engine.enqueue("s", [(1,)])
        engine.drain()
        assert engine.dequeue("o").num_rows == 1


def test_a_streaming_query_that_fails_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("x\n")
    lines = spark.readStream.format("text").load(str(tmp_path))
    engine = au.Engine(network(), spark=spark).start()
    try:
        engine.read_stream("s", lines.selectExpr("CAST(raise_error('no good') AS bigint) AS value"))
        with pytest.raises(RunError, match="no good") as failure:
            engine.drain(timeout_s=60)
    finally:
        engine.shutdown()
    assert (failure.value.code, failure.value.where) == ("SOURCE_FAILED", "stream s")


@pytest.mark.parametrize(
    ("format", "said"),
    [("delta", "io.delta:delta-spark_2.13 in the version for Spark 4"), ("nonsuch", "--jars")],
)
def test_a_missing_connector_is_one_sentence(spark: SparkSession, format: str, said: str) -> None:
    with pytest.raises(UsageError) as failure:
        au.Engine(network({"format": format, "path": "x"}), spark=spark).start()
    assert failure.value.code == "UNKNOWN_FORMAT"
    assert said in str(failure.value)
    assert "engine: {jars: […]}" in str(failure.value)
    assert "\n" not in str(failure.value)


def test_jars_that_the_session_does_not_have(spark: SparkSession, tmp_path: Path) -> None:
    net = network()
    net.engine = au.EngineOptions(jars=("x.jar",))
    net.directory = tmp_path
    assert code_of(au.Engine(net).start) == "NO_JAR"
    (tmp_path / "x.jar").write_bytes(b"")
    assert code_of(au.Engine(net).start) == "OTHER_JARS"
    assert code_of(lambda: start_session(jars=[tmp_path / "y.jar"])) == "NO_JAR"
