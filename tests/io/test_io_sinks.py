"""Where results go, and what happens when they cannot."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from auroral.errors import RunError, UsageError
from auroral.io.chunk import DeadLetter
from auroral.io.dead_letters import DeadLetterFile
from auroral.io.sinks.callback import CallbackSink
from auroral.io.sinks.console import ConsoleSink
from auroral.io.sinks.csv import CsvSink, csv_lines
from auroral.io.sinks.jsonl import JsonlSink, json_lines
from auroral.io.sinks.parquet import ParquetSink
from auroral.io.sinks.sink import Delivery, Sink
from auroral.network.types import Schema

SCHEMA = Schema.parse("a int, b string")
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")


def delivery(*values: int, moment: int = 1) -> Delivery:
    table = pa.table({"a": pa.array(values, pa.int32()), "b": ["x"] * len(values)})
    return Delivery("out", table, (moment, b""), (moment, b"\x01"))


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("double", 20.0, "20"),
        ("double", 0.1, "0.1"),
        ("double", 1e22, "1e22"),
        ("double", -0.0, "-0"),
        ("double", 5e-324, "5e-324"),
        ("float", 0.1, "0.1"),
        ("double", float("inf"), "Infinity"),
        ("double", float("-inf"), "-Infinity"),
        ("boolean", True, "true"),
        ("decimal(10,7)", "0.0000001", "0.0000001"),
        ("decimal(10,2)", "1.50", "1.50"),
        ("timestamp", 0, "1970-01-01T00:00:00Z"),
        ("timestamp", -1, "1969-12-31T23:59:59.999999Z"),
        ("timestamp", 1_500_000, "1970-01-01T00:00:01.5Z"),
        ("timestamp_ntz", 0, "1970-01-01T00:00:00"),
        ("date", 19723, "2024-01-01"),
        ("string", "a b", "a b"),
        ("string", "", '""'),
        ("string", 'a"b', '"a""b"'),
        ("string", "a\nb", '"a\nb"'),
        ("string", None, ""),
        ("binary", b"hi", "aGk="),
        ("array<double>", [1.0, None, float("nan")], '"[1,null,""NaN""]"'),
    ],
)
def test_csv_text(kind: str, value: Any, text: str) -> None:
    arrow = Schema.parse({"v": kind}).arrow().field(0).type
    column = pa.array([value]).cast(arrow) if kind.startswith("dec") else pa.array([value], arrow)
    assert bytes(csv_lines(pa.table({"v": column}))).decode() == f"{text}\n"


def test_json_text() -> None:
    table = pa.table({"a": [1.0, float("nan"), None], 'b"': ['q"', "é", None]})
    assert bytes(json_lines(table)).decode().splitlines() == [
        '{"a":1,"b\\"":"q\\""}',
        '{"a":"NaN","b\\"":"é"}',
        '{"a":null,"b\\"":null}',
    ]


def test_a_header_belongs_to_its_rows(tmp_path: Path) -> None:
    sink = CsvSink(tmp_path / "o.csv", "b string, a int")
    sink.open(None)
    with pytest.raises(UsageError, match=r"SINK_FIELDS.*o.csv.*fields b, a, but out has a, b"):
        sink.write(delivery(1))
    sink.close()
    assert (tmp_path / "o.csv").read_text() == "b,a\n"


@pytest.mark.parametrize("schema", ["a int, b string", {"a": "int", "b": "string"}, SCHEMA])
def test_a_schema_may_be_text(tmp_path: Path, schema: Any) -> None:
    sink = CsvSink(tmp_path / "o.csv", schema)
    sink.open(None)
    sink.write(delivery(1))
    sink.close()
    assert (tmp_path / "o.csv").read_text() == "a,b\n1,x\n"


@pytest.mark.parametrize("kind", [CsvSink, JsonlSink])
def test_crash_and_go_on(tmp_path: Path, kind: Any) -> None:
    path = tmp_path / "out"
    sink = kind(path, SCHEMA) if kind is CsvSink else kind(path)
    sink.open(None)
    position = json.loads(json.dumps(sink.write(delivery(1, 2))))
    kept = path.read_bytes()
    assert position == len(kept)
    sink.write(delivery(3))
    sink.close()
    sink.open(position)
    assert path.read_bytes() == kept
    sink.write(delivery(3))
    sink.close()
    whole = path.read_bytes()
    assert whole.startswith(kept)
    assert whole.count(b"\n") == 3 + (kind is CsvSink)
    path.write_bytes(kept[:-1])
    with pytest.raises(RunError, match=r"SINK_DAMAGED.*out"):
        sink.open(position)
    path.unlink()
    with pytest.raises(RunError, match="SINK_DAMAGED"):
        sink.open(position)
    sink.open(None)
    sink.close()
    assert path.read_bytes() == (b"a,b\n" if kind is CsvSink else b"")


def test_empty_delivery(tmp_path: Path) -> None:
    sink = CsvSink(tmp_path / "o.csv", SCHEMA)
    sink.open(None)
    assert sink.write(delivery()) == 4


@needs_full
@pytest.mark.parametrize(
    "sink",
    [CsvSink("/dev/full", SCHEMA), JsonlSink("/dev/full"), JsonlSink("/dev/full", durable=True)],
)
def test_full_disk(sink: Sink) -> None:
    with pytest.raises(RunError, match=r"CANNOT_WRITE.*/dev/full: cannot write: No space left"):  # noqa: PT012
        sink.open(None)
        sink.write(delivery(1))
    sink.close()


@pytest.mark.parametrize("make", [lambda p: CsvSink(p, SCHEMA), JsonlSink, ParquetSink])
def test_no_such_place(tmp_path: Path, make: Any) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"CANNOT_WRITE.*file/out: cannot write: Not a directory"):
        make(tmp_path / "file" / "out").open(None)


def test_parquet_parts(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = ParquetSink(path, durable=True)
    sink.open(None)
    assert sink.write(delivery(1, moment=5)) == 1
    assert sink.write(delivery(2, moment=6)) == 2
    (path / ".part-00000002-7-7.parquet.tmp").write_text("half")
    (path / "note.txt").write_text("mine")
    again = ParquetSink(path)
    again.open(1)
    assert sorted(os.listdir(path)) == ["note.txt", "part-00000000-5-5.parquet"]
    again.write(delivery(2, moment=6))
    again.open(1)
    again.write(delivery(2, moment=6))
    names = sorted(os.listdir(path))
    assert names[1:] == ["part-00000000-5-5.parquet", "part-00000001-6-6.parquet"]
    assert parquet.read_table(path / names[2]).column("a").to_pylist() == [2]
    with pytest.raises(RunError, match="SINK_DAMAGED"):
        again.open(3)
    again.open(None)
    assert os.listdir(path) == ["note.txt"]


def test_console_and_callback() -> None:
    shown = io.StringIO()
    console = ConsoleSink(shown)
    console.open(None)
    assert console.write(delivery(1, 2)) == 2
    assert shown.getvalue() == 'out {"a":1,"b":"x"}\nout {"a":2,"b":"x"}\n'
    got: list[Delivery] = []
    callback = CallbackSink(got.append)
    callback.open(5)
    assert callback.write(delivery(1)) == 6
    assert got[0].table.num_rows == 1


def test_dead_letter_file(tmp_path: Path) -> None:
    path = tmp_path / "dead.jsonl"
    file = DeadLetterFile(path)
    file.open(None)
    letter = DeadLetter("s", "x.csv", 3, "pos: expected int, found 'é'", "é\n\ud800")
    position = file.append([letter])
    file.append([letter])
    file.close()
    file.open(position)
    file.close()
    (line,) = path.read_text().splitlines()
    assert list(json.loads(line)) == ["source", "place", "line", "reason", "row"]
    assert json.loads(line)["line"] == 3
