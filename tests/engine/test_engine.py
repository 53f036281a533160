"""The engine from outside: tuples in, results out, everything counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import auroral as au
from auroral.io.sinks.callback import CallbackSink
from auroral.io.sources.iterable import IterableSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.conftest import MakeEngine

pytestmark = pytest.mark.spark
SCHEMA = "sid int, time bigint, pos int"


def border() -> au.Network:
    net = au.Network("border")
    reports = net.stream("reports", SCHEMA, progress=au.Delayed("time", 5))
    across = reports.filter("pos >= 30", name="across")
    net.output("alerts", across)
    net.output("others", across.rest)
    return net


def rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"sid": i, "time": i, "pos": i % 50} for i in range(start, start + count)]


@pytest.mark.parametrize("form", ["dicts", "tuples", "arrow", "batch", "pandas", "frame"])
def test_enqueue_takes_what_people_have(
    make_engine: MakeEngine, spark: SparkSession, form: str
) -> None:
    plain = rows(60)
    table = pa.Table.from_pylist(plain)
    given: Any = plain
    if form == "tuples":
        given = [tuple(row.values()) for row in plain]
    elif form == "arrow":
        given = table
    elif form == "batch":
        given = table.combine_chunks().to_batches()[0]
    elif form == "pandas":
        given = pd.DataFrame(plain)
    elif form == "frame":
        given = spark.createDataFrame(table).coalesce(1)
    with make_engine(border()) as engine:
        assert engine.enqueue("reports", given) == 60
        engine.drain()
        expected = [row for row in plain if row["pos"] >= 30]
        assert engine.dequeue("alerts").to_pylist() == expected
        assert engine.dequeue("alerts").num_rows == 0, "what was given is not given again"


def test_a_wrong_batch_is_refused_and_a_wrong_row_is_a_dead_letter(make_engine: MakeEngine) -> None:
    with make_engine(border()) as engine:
        with pytest.raises(au.UsageError, match="BAD_BATCH"):
            engine.enqueue("reports", pa.table({"sid": [1], "nonsense": [2]}))
        with pytest.raises(au.UsageError, match="there are reports"):
            engine.enqueue("report", [])
        assert engine.enqueue("reports", [{"sid": "x"}, {"sid": 1, "pos": 40}, (1, 2)]) == 1
        engine.drain()
        assert engine.dequeue("alerts").to_pylist() == [{"sid": 1, "time": None, "pos": 40}]
        stats = engine.stats()
        assert stats["dead"] == 2
        assert stats["streams"]["reports"]["dead"] == 2
        letters = [json.loads(line) for line in engine.dead_letters.read_text().splitlines()]
        assert [letter["source"] for letter in letters] == ["reports", "reports"]
        assert "expected int" in letters[0]["reason"]


def test_counts_and_progress_are_visible(make_engine: MakeEngine) -> None:
    with make_engine(border()) as engine:
        engine.enqueue("reports", rows(100))
        engine.drain()
        engine.dequeue("alerts")
        stats = engine.stats()
        assert stats["streams"]["reports"]["in"] == 100
        assert stats["arcs"]["across"]["tuples"] == 40
        assert stats["arcs"]["across.rest"]["tuples"] == 60
        assert stats["outputs"]["alerts"]["out"] == 40
        assert stats["outputs"]["others"]["waiting"] == 60
        assert stats["arcs"]["across"]["progress"] == {"time": 94}
        assert engine.describe("across")["arcs"] == {"across": SCHEMA, "across.rest": SCHEMA}
        assert engine.describe("alerts")["output"]["out"] == 40
        assert engine.list_entities()["boxes"] == ["across"]
        assert engine.typecheck()["across"] == SCHEMA
        with pytest.raises(au.UsageError, match="there is no nobody"):
            engine.describe("nobody")
        with pytest.raises(au.UsageError, match="there are alerts, others"):
            engine.dequeue("alert")


def test_inner_arcs_are_counted_exactly(make_engine: MakeEngine) -> None:
    """Some follow from others, some must be observed; all must be right."""
    net = au.Network("inner")
    first = net.stream("s", "a int").filter("a % 2 = 0", name="even")
    second = first.filter("a % 3 = 0", name="six")
    net.output("o", second.filter("a % 5 = 0", name="thirty"))
    net.output("r", second.rest)
    with make_engine(net, train=37) as engine:
        engine.enqueue("s", pa.table({"a": pa.array(range(300), pa.int32())}))
        engine.drain()
        counts = {name: arc["tuples"] for name, arc in engine.stats()["arcs"].items()}
        assert counts["even"] == 150
        assert counts["six"] == 50
        assert counts["thirty"] == 10
        assert counts["six.rest"] == 100


def test_two_outputs_on_one_arc_each_get_everything(make_engine: MakeEngine) -> None:
    net = border()
    net.output("again", "across")
    net.output("raw", "reports")
    with make_engine(net) as engine:
        engine.enqueue("reports", rows(50))
        engine.drain()
        assert engine.dequeue("alerts").equals(engine.dequeue("again"))
        assert engine.dequeue("raw").num_rows == 50


@au.function("double")
def root(pos: pa.Array) -> pa.Array:
    """Raises where a careless function would."""
    if pc.any(pc.less(pos, 0)).as_py():
        raise ValueError("negative")
    return pc.sqrt(pc.cast(pos, pa.float64()))


def test_python_functions_are_vectorised_and_their_failures_are_dead_letters(
    make_engine: MakeEngine,
) -> None:
    net = au.Network("functions")
    mapped = net.stream("s", "pos int").filter("pos > -10").map(keep=["pos"], name="m", root=root)
    net.output("o", mapped)
    with make_engine(net) as engine:
        engine.enqueue("s", [{"pos": p} for p in (4, -1, 9, -20, None, 16, -2)])
        engine.drain()
        out = engine.dequeue("o").to_pylist()
        assert out == [{"pos": 4, "root": 2.0}, {"pos": 9, "root": 3.0}, {"pos": 16, "root": 4.0}]
        stats = engine.stats()
        assert stats["boxes"]["m"]["dead"] == 2, "-20 and NULL never reached it"
        letters = [json.loads(line) for line in engine.dead_letters.read_text().splitlines()]
        assert letters[0]["source"] == "m"
        assert letters[0]["reason"] == "ValueError: negative"
        assert json.loads(letters[0]["row"]) == {"pos": -1}


def test_sinks_and_sources_are_bound(make_engine: MakeEngine, tmp_path: Path) -> None:
    got: list[dict[str, Any]] = []
    net = border()
    source = IterableSource("reports", iter(rows(120)), net.streams["reports"].schema_)
    sink = CallbackSink(lambda delivery: got.extend(delivery.table.to_pylist()))
    with make_engine(net, bind=[source, ("alerts", sink)], train=50) as engine:
        engine.drain()
        assert got == [row for row in rows(120) if row["pos"] >= 30]
        with pytest.raises(au.UsageError, match="HAS_SINK"):
            engine.dequeue("alerts")
        engine.bind_sink("others", sink)
        engine.drain()
        assert len(got) == 120, "what waited is delivered"


def test_a_background_engine_works_by_itself(make_engine: MakeEngine) -> None:
    with make_engine(border(), background=True, train=70) as engine:
        for start in range(0, 300, 30):
            engine.enqueue("reports", rows(30, start))
        engine.drain(timeout_s=120)
        expected = [row for row in rows(300) if row["pos"] >= 30]
        assert engine.dequeue("alerts").to_pylist() == expected


def test_a_failing_sink_stops_the_engine_with_its_reason(make_engine: MakeEngine) -> None:
    def refuse(_delivery: object) -> None:
        raise au.RunError("CANNOT_WRITE", "the disk is full")

    sinks = [("alerts", CallbackSink(refuse))]
    with make_engine(border(), background=True, bind=sinks) as engine:
        engine.enqueue("reports", rows(50))
        with pytest.raises(au.RunError, match="the disk is full"):
            engine.drain(timeout_s=120)


def test_any_read_stream_feeds_a_log_exactly_once(
    make_engine: MakeEngine, spark: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "in"
    place.mkdir()
    narrow = pa.schema([("sid", pa.int32()), ("time", pa.int64()), ("pos", pa.int32())])
    state = tmp_path / "state"
    net = border()

    def frame() -> Any:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(place))

    import pyarrow.parquet as pq

    seen: list[dict[str, Any]] = []
    for part in range(2):
        for number in range(2):
            table = pa.Table.from_pylist(rows(40, 80 * part + 40 * number), schema=narrow)
            pq.write_table(table, place / f"{part}-{number}.parquet")
        with make_engine(net, state=state) as engine:
            reader = engine.read_stream("reports", frame())
            engine.drain()
            assert engine.position("reports") == {"batch": 2 * part + 1}
            # A batch that Spark repeats after a crash changes nothing.
            assert engine.enqueue("reports", rows(40), position={"batch": 2 * part + 1}) == 0
            reader.stop()
            engine.drain()
            seen += engine.dequeue("alerts").to_pylist()
    assert sorted(row["sid"] for row in seen) == [i for i in range(160) if i % 50 >= 30]


def test_what_is_not_executable_is_refused_by_name(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = border()
    monkeypatch.setattr(type(net.boxes["across"]), "executable", False)
    with pytest.raises(au.UsageError, match="BOX_NOT_EXECUTABLE: box across"), make_engine(net):
        pass


def test_calls_before_the_start_are_refused(spark: SparkSession) -> None:
    engine = au.Engine(border(), spark=spark)
    with pytest.raises(au.UsageError, match="NOT_STARTED"):
        engine.enqueue("reports", rows(1))
    with pytest.raises(au.UsageError, match="BAD_OPTION"):
        au.Engine(border(), clock="sundial")
    with pytest.raises(au.UsageError, match="BAD_OPTION"):
        au.Engine(border(), train=0)
