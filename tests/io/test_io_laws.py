"""What is read depends on the file alone: not on blocks, limits, the fast path or a restart."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.io.chunk import Chunk
from auroral.io.fit import Extra
from auroral.io.readers import blocks, lexer
from auroral.io.readers.csv import CsvReader
from auroral.io.readers.jsonl import JsonRecords
from auroral.io.sources.directory import DirectorySource
from auroral.io.sources.files import FileSource
from auroral.io.sources.source import Source
from auroral.network.types import Schema

SCHEMA = Schema.parse("t int, s string")

CSV_ROWS = st.lists(
    st.sampled_from(
        [
            "1,a",
            "2,",
            '3,""',
            '4,"x\ny"',
            "x,b",
            "5",
            "",
            '6,"',
            '7,"a"b',
            '8,c"d',
            ",",
            "9,\r",
            "+3,q",
            *("0x1,h", " 4 ,sp", '"5","a""b"', "99999999999,r", "1,a,b", "1,\\xff", '"",z', "4,é"),
        ]
    ),
    max_size=12,
)
JSON_ROWS = st.lists(
    st.sampled_from(
        [
            *('{"t":1,"s":"a"}', '{"t":2}', "", '{"s":"é"}', '{"t":"x"}', '{"u":1}', '{"t":1.0}'),
            *(
                '{"t":1}{"t":2}',
                '{"t":',
                "3}",
                "[1]",
                '{"T":5}',
                '{"t":1,"t":2}',
                '{"t":1e3}',
                " {} ",
            ),
            *('{"s":"\\ud800"}', '{"t":-0}', '{"t":99999999999}', '{"_at":1}', "\\xff", "NaN"),
        ]
    ),
    max_size=12,
)


def rows(chunk: Chunk) -> Iterator[Any]:
    """What a chunk says, in order: rows, punctuations, dead letters, each with its place."""
    spots: list[tuple[int, Any]] = []
    for passed, letter in zip(chunk.offsets.dead, chunk.dead, strict=True):
        spots.append((int(passed), ("dead", letter.line, letter.reason, letter.row)))
    for position, row in zip(chunk.positions, chunk.tuples.to_pylist(), strict=True):
        spots.append((int(chunk.offsets.passed[position]), ("row", *row.values())))
    for p in chunk.punctuations:
        spots.append((int(chunk.offsets.passed[p.position]), ("to", p.value, p.group)))
    yield from (said for _, said in sorted(spots, key=lambda spot: spot[0]))


def drain(source: Source, limits: Iterator[int]) -> list[tuple[Any, list[Any]]]:
    found = []
    while not source.exhausted:
        limit = next(limits)
        chunk = source.poll(limit)
        assert chunk is not None
        assert chunk.count <= limit
        assert len(chunk.positions) + len(chunk.punctuations) == chunk.count
        found.append((json.loads(json.dumps(chunk.offset)), list(rows(chunk))))
    return found


def cycle(limits: list[int]) -> Iterator[int]:
    while True:
        yield from limits


def said(found: list[tuple[Any, list[Any]]]) -> list[Any]:
    return [row for _, part in found for row in part]


@contextmanager
def file(suffix: str, lines: list[str], end: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"x{suffix}")
        text = end.join(lines).encode().replace(b"\\xff", b"\xff")
        path.write_bytes(text)
        yield path


def read(path: Path, block: int, *, fast: bool = True, limits: tuple[int, ...] = (1000,)) -> Any:
    slow = () if fast else (mock.patch.object(CsvReader, "_split", return_value=None),)
    with mock.patch.object(blocks, "BLOCK_BYTES", block):
        if slow:
            with slow[0], mock.patch.object(JsonRecords, "read", return_value=None):
                return drain(source(path), cycle(list(limits)))
        return drain(source(path), cycle(list(limits)))


def source(path: Path) -> FileSource:
    return FileSource("s", path, SCHEMA, progress_on="t", by=("s",))


@given(CSV_ROWS, st.integers(1, 60), st.sampled_from(["\n", "\r\n", "\r"]), st.integers(1, 4))
@settings(max_examples=120, deadline=None)
def test_csv_reads_the_same_in_any_blocks(
    lines: list[str], block: int, end: str, limit: int
) -> None:
    with file(".csv", ["t,s", *lines], end) as path:
        whole = said(read(path, 1 << 20))
        assert said(read(path, block, limits=(limit,))) == whole
        assert said(read(path, 1 << 20, fast=False)) == whole
        assert said(read(path, block, fast=False)) == whole


@given(JSON_ROWS, st.integers(1, 60), st.sampled_from(["\n", "\r\n"]), st.integers(1, 4))
@settings(max_examples=120, deadline=None)
def test_jsonl_reads_the_same_in_any_blocks(
    lines: list[str], block: int, end: str, limit: int
) -> None:
    with file(".jsonl", lines, end) as path:
        whole = said(read(path, 1 << 20))
        assert said(read(path, block, limits=(limit,))) == whole
        assert said(read(path, block, fast=False)) == whole


@given(st.binary(max_size=40).map(lambda b: bytes(b'a,"\n\r'[x % 5] for x in b)))
@settings(max_examples=500, deadline=None)
def test_lexer_splits_as_arrow_does(data: bytes) -> None:
    end, plain = lexer.cut(data, True)
    found = [r.fields for r in lexer.records(data) if r.fields != [None]]
    if not plain or end < len(data) or any(len(f) != 2 for f in found) or not found:
        return
    with file(".csv", ["t,s"], "") as path:
        path.write_bytes(b"t,s\n" + data)
        reader = CsvReader(str(path), source(path)._reader.rows)  # type: ignore[attr-defined]
        columns = reader._split(blocks.RecordBlock(data, 0, 1, True))
    assert columns is not None
    texts = [[None if f is None else f.decode() for f in fields] for fields in found]
    assert [list(row) for row in zip(*(c.to_pylist() for c in columns), strict=True)] == texts


TIMED = st.lists(
    st.tuples(st.sampled_from(["1", "2", "2.5", "3", "x", "", "nan"]), st.sampled_from("ab"))
    .flatmap(lambda at: st.tuples(st.just(at), st.sampled_from(["1", "y", "7"]), st.booleans()))
    .map(lambda row: f"{row[0][0]},{'' if row[2] else row[1]},{row[1]},{row[0][1]}"),
    max_size=10,
)


@given(TIMED, st.integers(1, 40), st.integers(1, 3), st.booleans())
@settings(max_examples=100, deadline=None)
def test_resume_gives_the_rest(lines: list[str], block: int, limit: int, timed: bool) -> None:
    header = "_at,_punctuation,t,s"
    if not timed:
        header, lines = "_punctuation,t,s", [line.split(",", 1)[1] for line in lines]
    with file(".csv", [header, *lines], "\n") as path:
        parts = read(path, block, limits=(limit,))
        whole = said(parts)
        done = 0
        for offset, part in parts:
            done += len(part)
            with mock.patch.object(blocks, "BLOCK_BYTES", block):
                again = source(path)
                again.seek(offset)
                assert said(drain(again, cycle([2]))) == whole[done:]


@given(st.lists(CSV_ROWS, min_size=1, max_size=3), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_directory_resume_gives_the_rest(files: list[list[str]], limit: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for i, lines in enumerate(files):
            Path(folder, f"{i}.csv").write_text("\n".join(["t,s", *lines]), newline="")

        def made() -> DirectorySource:
            return DirectorySource("s", folder, SCHEMA, format="csv", once=True)

        parts = drain(made(), cycle([limit]))
        whole, done = said(parts), 0
        for offset, part in parts:
            done += len(part)
            again = made()
            again.seek(offset)
            assert said(drain(again, cycle([5]))) == whole[done:]


@pytest.mark.parametrize("rows_per_group", [2, 3])
def test_parquet_resume(tmp_path: Path, rows_per_group: int) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"t": [1, 2, 3, 4, 5], "s": list("abcde"), "_at": [1.0, None, 2, 3, 4]})
    pa.parquet.write_table(table, path, row_group_size=rows_per_group)
    parts = read(path, 1, limits=(1,))
    whole, done = said(parts), 0
    assert whole[1] == ("dead", None, "row 2: _at is missing", '{"t": 2, "s": "b", "_at": null}')
    for offset, part in parts:
        done += len(part)
        again = source(path)
        again.seek(offset)
        assert said(drain(again, cycle([2]))) == whole[done:]


@given(CSV_ROWS, st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_split_loses_nothing(lines: list[str], n: int) -> None:
    with file(".csv", ["t,s", *lines], "\n") as path:
        chunk = source(path).poll(1000)
        if chunk is None:
            return
        first, rest = chunk.split(n)
        assert first.count == min(n, chunk.count)
        assert first.count + rest.count == chunk.count
        assert [*rows(first), *rows(rest)] == list(rows(chunk))
        assert rest.offset == chunk.offset


@given(JSON_ROWS, st.integers(1, 60), st.sampled_from(["ignore", "keep"]))
@settings(max_examples=80, deadline=None)
def test_other_fields_are_read_the_same_in_any_blocks(
    lines: list[str], block: int, extra: Extra
) -> None:
    schema = Schema.parse("t int, s string, _extra string") if extra == "keep" else SCHEMA
    more = [*lines, '{"t":1,"s":"a","u":[1,2.50]}', '{"u":{"v":1}}', '{"T":7,"u":1,"w":2}']

    def found(size: int, fast: bool = True) -> list[Any]:
        slow = mock.patch.object(JsonRecords, "read", return_value=None)
        with mock.patch.object(blocks, "BLOCK_BYTES", size), nullcontext() if fast else slow:
            source = FileSource("s", path, schema, progress_on="t", extra=extra)
            return said(drain(source, cycle([1000])))

    with file(".jsonl", more, "\n") as path:
        whole = found(1 << 20)
        assert found(block) == whole
        assert found(1 << 20, fast=False) == whole
    assert not any(row[0] == "dead" and "no field" in row[2] for row in whole)
    assert whole[-1][1] == 7 or whole[-1][2] == "_at is missing"


@given(CSV_ROWS, st.integers(1, 60), st.sampled_from(["\n", "\r\n", "\r"]), st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_long_quoted_fields_are_cut_the_same_in_any_blocks(
    lines: list[str], block: int, end: str, most_lines: int
) -> None:
    def found(size: int, fast: bool = True) -> list[Any]:
        slow = mock.patch.object(CsvReader, "_split", return_value=None)
        with mock.patch.object(blocks, "BLOCK_BYTES", size), nullcontext() if fast else slow:
            source = FileSource("s", path, SCHEMA, max_field_lines=most_lines)
            return said(drain(source, cycle([3])))

    with file(".csv", ["t,s", *lines], end) as path:
        whole = found(1 << 20)
        assert found(block) == whole
        assert found(1 << 20, fast=False) == whole
        assert found(block, fast=False) == whole
    for _, _, text in (row for row in whole if row[0] == "row"):
        assert lexer.lines((text or "").encode()) < most_lines
