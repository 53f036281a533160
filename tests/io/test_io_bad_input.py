"""What does not fit: told exactly, and never a crash."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from auroral.errors import UsageError
from auroral.io.chunk import ROW_CHARS, Chunk
from auroral.io.readers import blocks
from auroral.io.sources.files import FileSource
from auroral.network.types import Schema

POS = Schema.parse("sid int, pos int")


def read(path: Path, schema: Schema | str, **options: Any) -> Chunk:
    """The whole of a small file as one chunk."""
    source = FileSource("reports", path, Schema.parse(schema), **options)
    chunk = source.poll(1_000_000)
    assert chunk is not None
    assert source.exhausted
    return chunk


def read_all(path: Path, schema: Schema | str) -> list[Chunk]:
    source = FileSource("reports", path, Schema.parse(schema))
    found = []
    while (chunk := source.poll(1_000_000)) is not None:
        found.append(chunk)
    assert source.exhausted
    return found


def csv(folder: Path, text: str | bytes) -> Path:
    path = folder / "x.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def jsonl(folder: Path, text: str | bytes) -> Path:
    path = folder / "x.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def reasons(chunk: Chunk) -> list[tuple[int | None, str]]:
    return [(letter.line, letter.reason) for letter in chunk.dead]


def test_dead_letters_say_line_and_reason(tmp_path: Path) -> None:
    path = csv(tmp_path, "pos,sid\n1,2\nabc,2\n1\n\n1,2,3\n99999999999,1\n5,6\n")
    chunk = read(path, POS)
    assert chunk.tuples.to_pylist() == [{"sid": 2, "pos": 1}, {"sid": 6, "pos": 5}]
    assert reasons(chunk) == [
        (3, "pos: expected int, found 'abc'"),
        (4, "expected 2 fields, found 1"),
        (6, "expected 2 fields, found 3"),
        (7, "pos: expected int, found '99999999999'"),
    ]
    letter = chunk.dead[0]
    assert (letter.source, letter.place, letter.row) == ("reports", str(path), "abc,2")


@pytest.mark.parametrize("body", ['1,"a\nb"\nx,c\n', '1,"a\r\nb"\r\nx,c\r\n', '1,"a\rb"\rx,c\r'])
def test_a_record_starts_where_its_first_line_is(tmp_path: Path, body: str) -> None:
    chunk = read(csv(tmp_path, "n,s\n" + body), "n int, s string")
    assert reasons(chunk) == [(4, "n: expected int, found 'x'")]


def test_byte_order_mark_and_blank_lines_before_the_header(tmp_path: Path) -> None:
    chunk = read(csv(tmp_path, b"\xef\xbb\xbf\r\nsid,pos\r\n1,2\r\nx,2"), POS)
    assert chunk.tuples.to_pylist() == [{"sid": 1, "pos": 2}]
    assert reasons(chunk) == [(4, "sid: expected int, found 'x'")]


def test_invalid_utf8_costs_its_row_only(tmp_path: Path) -> None:
    chunk = read(csv(tmp_path, b"n,s\n1,ok\n2,\xff\xfe\n3,\xc3\xa9\n"), "n int, s string")
    assert chunk.tuples.column("s").to_pylist() == ["ok", "é"]
    assert reasons(chunk) == [(3, "invalid UTF-8")]
    assert chunk.dead[0].row == "2,\\xff\\xfe"


def test_unclosed_quote_costs_its_line_only(tmp_path: Path) -> None:
    path = csv(tmp_path, 'n,s\n1,a\n2,"b\n3,c\n')
    found = read_all(path, "n int, s string")
    assert [n for c in found for n in c.tuples.column("n").to_pylist()] == [1, 3]
    assert [r for c in found for r in reasons(c)] == [
        (3, "a quoted field is not closed within 1000 lines")
    ]


def test_an_unbalanced_quote_costs_no_more_than_its_line(tmp_path: Path) -> None:
    """It closed at the next quote of the file, thousands of good rows later."""
    lines = [f"{n},a" for n in range(50_000)]
    lines[100] = '100,"a'
    lines[2_484] = '2484,"x"'
    found = read_all(csv(tmp_path, "\n".join(["n,s", *lines])), "n int, s string")
    numbers = [n for c in found for n in c.tuples.column("n").to_pylist()]
    assert numbers == [n for n in range(50_000) if n != 100]
    why = "a quoted field is not closed within 1000 lines"
    assert [r for c in found for r in reasons(c)] == [(102, why)]
    assert found[0].dead[0].row == '100,"a'


def test_a_dead_letter_says_how_many_lines_it_spans(tmp_path: Path) -> None:
    text = 'n,s\n1,"a\n2,b\n3,"c"\nx,"y\nz"\n5,"d\ne"\n'
    chunk = read(csv(tmp_path, text), "n int, s string")
    assert chunk.tuples.to_pylist() == [
        {"n": 1, "s": 'a\n2,b\n3,c"'},
        {"n": 5, "s": "d\ne"},
    ]
    assert reasons(chunk) == [(5, "n: expected int, found 'x'; the record spans 2 lines")]
    chunk = read(csv(tmp_path, 'n,s\n1,"a\n2,b\n3,",c\n'), "n int, s string")
    assert reasons(chunk) == [(2, "expected 2 fields, found 3; the record spans 3 lines")]


@pytest.mark.parametrize(
    ("most", "numbers", "dead"),
    [(3, [1, 5], []), (2, [5], [2, 3, 4]), (1, [5], [2, 3, 4])],
)
def test_how_long_a_quoted_field_may_be(
    tmp_path: Path, most: int, numbers: list[int], dead: list[int]
) -> None:
    """One of three lines."""
    path = csv(tmp_path, 'n,s\n1,"a\n2\n"\n5,e\n')
    chunk = read(path, "n int, s string", max_field_lines=most)
    assert chunk.tuples.column("n").to_pylist() == numbers
    assert [letter.line for letter in chunk.dead] == dead


VALUES = [
    ("boolean", "TRUE", True),
    ("boolean", "1", None),
    ("tinyint", "128", None),
    ("int", " +7 ", 7),
    ("int", "1.0", None),
    ("int", "0x10", None),
    ("double", "NaN", float("nan")),
    ("double", "-Infinity", float("-inf")),
    ("double", "inf", float("inf")),
    ("double", "1,5", None),
    ("decimal(4,2)", "1.50", Decimal("1.50")),
    ("decimal(4,2)", "1.505", None),
    ("decimal(4,2)", "123.4", None),
    ("date", "2024-02-29", dt.date(2024, 2, 29)),
    ("date", "2023-02-29", None),
    ("timestamp", "2024-01-01T01:00:00+01:00", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    ("timestamp", "2024-01-01 00:00:00", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    ("timestamp", "2024-01-01T00:00:00.000000000z", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    ("timestamp", "2024-01-01T25:00:00", None),
    ("timestamp_ntz", "2024-01-01T00:00:00", dt.datetime(2024, 1, 1)),
    ("timestamp_ntz", "2024-01-01T00:00:00Z", None),
    ("binary", "aGk=", b"hi"),
    ("binary", "a", None),
    ("array<int>", "[1,2]", [1, 2]),
    ("array<int>", "[1,", None),
    ("array<int>", '["a"]', None),
    ("struct<x:int>", '{"x":1}', {"x": 1}),
    ("struct<x:int>", '{"y":1}', None),
    ("map<string,int>", '{"a":1}', [("a", 1)]),
]


@pytest.mark.parametrize(("kind", "text", "value"), VALUES)
def test_csv_values(tmp_path: Path, kind: str, text: str, value: Any) -> None:
    quoted = '"' + text.replace('"', '""') + '"'
    chunk = read(csv(tmp_path, f"v,w\n{quoted},1\n,2\n"), {"v": kind, "w": "int"})  # type: ignore[arg-type]
    if value is None:
        assert len(chunk.dead) == 1
        assert chunk.dead[0].line == 2
        assert chunk.dead[0].reason.startswith("v: expected ")
        assert chunk.tuples.to_pylist() == [{"v": None, "w": 2}]
    else:
        assert repr(chunk.tuples.column("v").to_pylist()) == repr([value, None]).replace(
            "datetime.timezone.utc", "zoneinfo.ZoneInfo(key='UTC')"
        )


def test_empty_and_null(tmp_path: Path) -> None:
    chunk = read(csv(tmp_path, 's,n,b\n"","",""\n,,\n'), "s string, n int, b binary")
    assert chunk.tuples.to_pylist() == [
        {"s": "", "n": None, "b": b""},
        {"s": None, "n": None, "b": None},
    ]


def test_a_blank_line_is_a_row_of_a_single_column(tmp_path: Path) -> None:
    chunk = read(csv(tmp_path, 's\na\n\n""\n'), "s string")
    assert chunk.tuples.column("s").to_pylist() == ["a", None, ""]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("sid", "missing pos"),
        ("sid,pos,x", "unknown x"),
        ("sid,pos,POS", "twice POS"),
        ("a,b", "a, b"),
    ],
)
def test_header_mismatch(tmp_path: Path, header: str, said: str) -> None:
    path = csv(tmp_path, header + "\n1,2\n")
    with pytest.raises(UsageError) as caught:
        FileSource("s", path, POS)
    assert caught.value.code == "HEADER_MISMATCH"
    for part in (said, "expected sid,pos", f"found {header}", str(path)):
        assert part in str(caught.value)


def test_columns_match_in_any_order_and_case(tmp_path: Path) -> None:
    assert read(csv(tmp_path, "POS, Sid\n1,2\n"), POS).tuples.to_pylist() == [{"sid": 2, "pos": 1}]


@pytest.mark.parametrize("text", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_empty_file(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(UsageError, match="EMPTY_FILE"):
        FileSource("s", csv(tmp_path, text), POS)


def test_header_only(tmp_path: Path) -> None:
    source = FileSource("s", csv(tmp_path, "sid,pos"), POS)
    assert source.exhausted
    assert source.poll(10) is None


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_cannot_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"none.{suffix}"
    with pytest.raises(UsageError, match=r"CANNOT_READ.*none.*No such file"):
        FileSource("s", path, POS)
    path.mkdir()
    with pytest.raises(UsageError, match=r"CANNOT_READ.*none.*Is a directory"):
        FileSource("s", path, POS)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    path = csv(tmp_path, "sid,pos\n")
    path.chmod(0)
    with pytest.raises(UsageError, match=r"CANNOT_READ.*Permission denied"):
        FileSource("s", path, POS)


def test_no_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"no parquet at all")
    with pytest.raises(UsageError, match="CANNOT_READ"):
        FileSource("s", path, POS)


def test_parquet_types(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"POS": [1], "sid": pa.array([2], pa.uint8())}), path)
    assert read(path, POS).tuples.to_pylist() == [{"sid": 2, "pos": 1}]
    parquet.write_table(pa.table({"pos": ["1"], "sid": [2]}), path)
    with pytest.raises(UsageError, match=r"BAD_BATCH.*x.parquet.*pos: expected int, found string"):
        FileSource("s", path, POS).poll(1)


def test_huge_fields(tmp_path: Path) -> None:
    huge = "x" * 20_000_000
    path = csv(tmp_path, f'n,s\n1,{huge}\n{huge},a\n3,"{huge}\n"\n')
    found = read_all(path, "n int, s string")
    lengths = [len(s) for c in found for s in c.tuples.column("s").to_pylist()]
    assert lengths == [20_000_000, 20_000_001]
    (letter,) = (letter for c in found for letter in c.dead)
    assert (letter.line, len(letter.row)) == (3, ROW_CHARS)
    assert len(letter.reason) < 200


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_line_without_end(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 16)
    monkeypatch.setattr(blocks, "RECORD_BYTES", 64)
    rows = ["1,2", "5" * 500 + ",1", "3,4"]
    if suffix == "jsonl":
        rows = [f'{{"sid":{row.replace(",", ",%")}}}'.replace("%", '"pos":') for row in rows]
    path = tmp_path / f"x.{suffix}"
    path.write_text("\n".join(["sid,pos"] * (suffix == "csv") + rows))
    found = read_all(path, POS)
    assert [row for c in found for row in c.tuples.to_pylist()] == [
        {"sid": 1, "pos": 2},
        {"sid": 3, "pos": 4},
    ]
    assert [r for c in found for r in reasons(c)] == [
        (3 if suffix == "csv" else 2, blocks.TOO_LONG)
    ]


def test_arrival_times(tmp_path: Path) -> None:
    chunk = read(csv(tmp_path, "_at,sid,pos\n0.5,1,2\n,1,2\nx,1,2\ninf,1,2\n1.25,3,4\n"), POS)
    assert chunk.at_us is not None
    assert chunk.at_us.tolist() == [500_000, 1_250_000]
    assert reasons(chunk) == [
        (3, "_at is missing"),
        (4, "_at: expected double, found 'x'"),
        (5, "_at: expected seconds, found inf"),
    ]


def test_unsorted_arrival_is_sorted_and_stable(tmp_path: Path) -> None:
    path = csv(tmp_path, "_at,sid,pos\n2,1,\n1,2,\nx,9,\n2,3,\n1,4,\n")
    chunk = read(path, POS)
    assert chunk.tuples.column("sid").to_pylist() == [2, 4, 1, 3]
    assert reasons(chunk) == [(4, "_at: expected double, found 'x'")]


def test_punctuations(tmp_path: Path) -> None:
    text = "_punctuation,sid,pos\n,1,2\n7,1,junk\n,3,4\nx,1,1\n9,y,1\n"
    chunk = read(csv(tmp_path, text), POS, progress_on="pos", by=("sid",))
    assert chunk.count == 3
    assert chunk.positions.tolist() == [0, 2]
    (punctuation,) = chunk.punctuations
    assert (punctuation.position, punctuation.value, punctuation.group) == (1, 7, (1,))
    assert reasons(chunk) == [
        (5, "_punctuation: expected int, found 'x'"),
        (6, "sid: expected int, found 'y'"),
    ]
    chunk = read(csv(tmp_path, text), POS)
    assert reasons(chunk)[0] == (3, "a punctuation, but reports declares no progress")


def test_jsonl(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path,
        b'{"sid":1,"pos":2}\n\n{"sid":1}\n{"sid":1,"x":2}\n{"sid":"1"}\n[1]\n{"sid":\n'
        b'{"sid":\xff}\n{"POS":3}\n{"sid":1.5}\n{"_at":1}\n',
    )
    chunk = read(path, POS)
    assert chunk.tuples.to_pylist() == [
        {"sid": 1, "pos": 2},
        {"sid": 1, "pos": None},
        {"sid": None, "pos": 3},
    ]
    assert [line for line, _ in reasons(chunk)] == [4, 5, 6, 7, 8, 10, 11]
    assert [why.split(": ")[0] for _, why in reasons(chunk)] == [
        "there is no field x",
        "sid",
        "expected a JSON object",
        "invalid JSON",
        "invalid UTF-8",
        "sid",
        "_at",
    ]


def test_jsonl_doubles_and_punctuations(tmp_path: Path) -> None:
    text = '{"v":NaN}\n{"v":"Infinity"}\n{"v":2}\n{"_punctuation":3}\n{"_punctuation":""}\n'
    chunk = read(jsonl(tmp_path, text), "v double", progress_on="v")
    assert repr(chunk.tuples.column("v").to_pylist()) == "[nan, inf, 2.0, None]"
    assert [p.value for p in chunk.punctuations] == [3.0]
    assert chunk.dead == ()


def test_jsonl_deep_and_long(tmp_path: Path) -> None:
    text = '{"sid":' + "[" * 100_000 + "\n" + '{"sid":' + "1" * 5000 + '}\n{"sid":1}\n'
    chunk = read(jsonl(tmp_path, text), POS)
    assert chunk.count == 1
    assert [line for line, _ in reasons(chunk)] == [1, 2]


def test_empty_jsonl(tmp_path: Path) -> None:
    assert FileSource("s", jsonl(tmp_path, ""), POS).exhausted


def test_a_file_that_shrank(tmp_path: Path) -> None:
    path = csv(tmp_path, "sid,pos\n" + "1,2\n" * 10)
    chunk = FileSource("s", path, POS).poll(5)
    assert chunk is not None
    csv(tmp_path, "sid,pos\n")
    source = FileSource("s", path, POS)
    source.seek({**chunk.offset, "base": {"byte": 40, "line": 9}})
    with pytest.raises(UsageError, match="SOURCE_CHANGED"):
        source.poll(1)


def test_unknown_suffix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"UNKNOWN_FORMAT.*csv, jsonl, parquet"):
        FileSource("s", tmp_path / "x.xlsx", POS)
