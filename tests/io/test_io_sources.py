"""Directories, rates, iterables, and how they are named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from auroral.errors import UsageError
from auroral.io.open import open_sink, open_source
from auroral.io.sources.directory import DirectorySource
from auroral.io.sources.iterable import IterableSource
from auroral.io.sources.rate import RateSource
from auroral.io.sources.source import Source
from auroral.network.types import Schema

N = Schema.parse("n int")
EVERY = Schema.parse(
    "a tinyint, b bigint, c double, d float, e boolean, f string, g binary, h date, i timestamp,"
    " j timestamp_ntz, k decimal(5,2), l array<int>"
)


def drop(folder: Path, name: str, numbers: list[int], mtime: int) -> None:
    path = folder / name
    path.write_text("n\n" + "".join(f"{n}\n" for n in numbers))
    os.utime(path, ns=(mtime, mtime))


def numbers(source: Source, limit: int = 100) -> list[int]:
    found: list[int] = []
    while (chunk := source.poll(limit)) is not None:
        found += chunk.tuples.column("n").to_pylist()
    return found


def test_directory_grows(tmp_path: Path) -> None:
    drop(tmp_path, "b.csv", [1], 10)
    drop(tmp_path, "a.csv", [2], 20)
    drop(tmp_path, "c.csv", [0], 10)
    for name in ("_x.csv", ".y.csv", "z.csv.tmp", "w.jsonl"):
        drop(tmp_path, name, [99], 1)
    source = DirectorySource("s", tmp_path, N, format="csv")
    assert numbers(source) == [1, 0, 2]
    assert not source.exhausted
    drop(tmp_path, "d.csv", [3, 4], 5)
    chunk = source.poll(1)
    assert chunk is not None
    drop(tmp_path, "e.csv", [5], 1)
    again = DirectorySource("s", tmp_path, N, format="csv")
    again.seek(chunk.offset)
    assert numbers(again) == [4, 5] == numbers(source)
    again.close()


def test_directory_once(tmp_path: Path) -> None:
    drop(tmp_path, "a.csv", [1], 1)
    drop(tmp_path, "b.csv", [], 1)
    source = DirectorySource("s", tmp_path, N, format="csv", once=True)
    assert not source.exhausted
    assert numbers(source) == [1]
    assert source.exhausted


def test_directory_file_vanished(tmp_path: Path) -> None:
    drop(tmp_path, "a.csv", [1], 1)
    source = DirectorySource("s", tmp_path, N, format="csv")
    (tmp_path / "a.csv").unlink()
    with pytest.raises(UsageError, match=r"CANNOT_READ.*a.csv"):
        source.poll(1)
    with pytest.raises(UsageError, match="CANNOT_READ"):
        DirectorySource("s", tmp_path / "none", N, format="csv")


def test_rate_is_a_function_of_the_row() -> None:
    fields = {
        "a": {"cycle": 3},
        "b": {"step": [100, 10]},
        "c": {"normal": [20, 5]},
        "d": {"uniform": [0, 1]},
        "f": {"choice": ["x", "y"]},
        "k": {"constant": 1},
        "i": {"step": 0.5},
    }
    now = [0.0]

    def made() -> RateSource:
        return RateSource("s", EVERY, rows_per_s=10, rows=25, fields=fields, now=lambda: now[0])

    whole = made()
    assert whole.poll(10) is None
    now[0] = 100.0
    every = whole.poll(100)
    assert every is not None
    assert whole.exhausted
    assert every.count == 25
    rows = every.tuples.to_pylist()
    assert [r["a"] for r in rows[:4]] == [0, 1, 2, 0]
    assert [r["b"] for r in rows[:3]] == [100, 110, 120]
    assert {r["f"] for r in rows} == {"x", "y"}
    assert 10 < sum(r["c"] for r in rows) / 25 < 30
    now[0] = 0.0
    parts = made()
    assert parts.poll(100) is None, "time counts from the first call"
    now[0] = 0.7
    first = parts.poll(100)
    assert first is not None
    assert first.count == 7
    resumed = made()
    resumed.seek(first.offset)
    assert resumed.poll(5) is None
    now[0] = 50
    rest = resumed.poll(100)
    assert rest is not None
    assert first.tuples.to_pylist() + rest.tuples.to_pylist() == rows


@pytest.mark.parametrize(
    "spec", [{"cycle": 0}, {"cyle": 1}, 5, {"normal": 3}, {"choice": "ab"}, {}]
)
def test_bad_generators(spec: Any) -> None:
    with pytest.raises(UsageError, match=r"BAD_GENERATOR.*n"):
        RateSource("s", N, rows_per_s=1, fields={"n": spec})


def test_rate_defaults_fit_their_types() -> None:
    clock = iter([0.0, 1.0])
    chunk = RateSource("s", EVERY, rows_per_s=300, now=lambda: next(clock)).poll(1000)
    assert chunk is not None
    assert chunk.tuples.schema == EVERY.arrow()
    assert chunk.count == 300
    chunk.tuples.validate(full=True)


def test_iterable() -> None:
    batch = pa.table({"n": [3, 4, 5]})
    rows: list[Any] = [{"n": 1}, (2,), batch, {"n": "x"}, None, {"n": 6}]
    source = IterableSource("s", rows, N)
    chunks = []
    while not source.exhausted:
        chunk = source.poll(2)
        if chunk is not None:
            chunks.append(chunk)
    assert [n for c in chunks for n in c.tuples.column("n").to_pylist()] == [1, 2, 3, 4, 5, 6]
    assert [letter.reason for c in chunks for letter in c.dead] == ["n: expected int, found 'x'"]
    done: list[int] = []
    for chunk in chunks:
        done += chunk.tuples.column("n").to_pylist()
        again = IterableSource("s", rows, N)
        rest: list[int] = []
        again.seek(chunk.offset)
        while not again.exhausted:
            more = again.poll(3)
            rest += more.tuples.column("n").to_pylist() if more is not None else []
        assert done + rest == [1, 2, 3, 4, 5, 6]


def test_open_by_path_and_spec(tmp_path: Path) -> None:
    drop(tmp_path, "a.csv", [1], 1)
    assert numbers(open_source("s", "a.csv", N, root=tmp_path)) == [1]
    assert numbers(open_source("s", {"path": "a.csv"}, N, root=tmp_path)) == [1]
    folder = open_source("s", tmp_path, N)
    assert numbers(folder) == [1]
    assert folder.exhausted
    growing = open_source("s", {"format": "csv", "path": str(tmp_path)}, N)
    assert numbers(growing) == [1]
    assert not growing.exhausted
    rate = open_source(
        "s", {"format": "rate", "rows_per_second": 10, "rows": 3}, N, now=iter([0, 9]).__next__
    )
    assert numbers_once(rate) == [0, 1, 2]
    assert numbers(open_source("s", {"format": "iterable", "rows": [{"n": 4}]}, N)) == [4]
    for spec in ("o.csv", "o.jsonl", "o.parquet", {"format": "console"}):
        open_sink("o", spec, N, root=tmp_path)
    open_sink("o", {"format": "callback", "function": lambda _: None}, N)


def numbers_once(source: Source) -> list[int]:
    chunk = source.poll(100)
    assert chunk is not None
    return list(chunk.tuples.column("n").to_pylist())


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"format": "cvs", "path": "x"}, "UNKNOWN_FORMAT.*'cvs'.*csv, jsonl.*did you mean csv"),
        ({"path": "x.xls"}, r"UNKNOWN_FORMAT.*x.xls.*\.csv"),
        ({}, "UNKNOWN_FORMAT"),
        ({"format": "csv"}, "MISSING_OPTION.*path"),
        ({"format": "csv", "path": 5}, "BAD_OPTION"),
        ({"format": "csv", "pth": "x"}, "UNKNOWN_OPTION.*pth.*path, once"),
        ({"format": "rate", "rows_per_second": "x"}, "BAD_OPTION.*rows_per_second"),
        (
            {"format": "rate", "rows_per_second": -1},
            "source of s.*BAD_OPTION|BAD_OPTION.*source of s",
        ),
        ({"format": "rate", "rows_per_second": 1, "rows": 1.5}, "BAD_OPTION.*rows"),
        ({"format": "rate", "rows_per_second": 1, "fields": {"m": {}}}, "UNKNOWN_FIELD.*m"),
    ],
)
def test_bad_specs(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        open_source("s", spec, N)


def test_bad_sinks() -> None:
    with pytest.raises(UsageError, match=r"UNKNOWN_FORMAT.*sink of o.*console"):
        open_sink("o", {"format": "rate"}, N)
    with pytest.raises(UsageError, match=r"UNKNOWN_OPTION.*none"):
        open_sink("o", {"format": "console", "path": "x"}, N)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_other_columns(tmp_path: Path, suffix: str) -> None:
    """Files with more columns than the schema: refused, ignored or kept."""
    path = tmp_path / f"x.{suffix}"
    if suffix == "csv":
        path.write_text('y,a,x\n5,1,"p,q"\n,2,\n')
    elif suffix == "jsonl":
        path.write_text('{"y": "5", "a": 1, "x": "p,q"}\n{"a": 2}\n')
    else:
        pa.parquet.write_table(pa.table({"y": ["5", None], "a": [1, 2], "x": ["p,q", None]}), path)

    def rows(schema: str, **options: str) -> list[Any]:
        spec = {"format": suffix, "path": str(path), **options}
        chunk = open_source("s", spec, Schema.parse(schema)).poll(10)
        assert chunk is not None
        return [list(row.values()) for row in chunk.tuples.to_pylist()]

    assert rows("a int", extra="ignore") == [[1], [2]]
    kept = '{"y": "5", "x": "p,q"}'
    assert rows("a int, _extra string", extra="keep") == [[1, kept], [2, None]]
    if suffix == "jsonl":
        assert rows("a int") == [[2]]
    else:
        with pytest.raises(UsageError, match="unknown y, x"):
            rows("a int")
    with pytest.raises(UsageError, match="expected one of reject, ignore, keep, found 'all'"):
        rows("a int", extra="all")
