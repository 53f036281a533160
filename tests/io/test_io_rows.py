"""What `enqueue` takes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from auroral.errors import UsageError
from auroral.io.rows import RowReader, to_chunk
from auroral.network.types import Schema

pd: Any = pytest.importorskip("pandas")
SCHEMA = Schema.parse("sid int, v double, name string")
ROW = {"sid": 1, "v": 2.5, "name": "x"}


@pytest.mark.parametrize(
    "rows",
    [
        ROW,
        [ROW],
        [tuple(ROW.values())],
        (dict(r) for r in [ROW]),
        [{"SID": 1, "v": 2.5, "Name": "x"}],
        [{"sid": np.int64(1), "v": np.float32(2.5), "name": "x"}],
        [{"sid": 1.0, "v": Decimal("2.5"), "name": "x"}],
        pa.Table.from_pylist([ROW]),
        pa.RecordBatch.from_pylist([dict(reversed(ROW.items()))]),
        pa.table(
            {
                "sid": pa.array([1], pa.uint8()),
                "v": [2.5],
                "name": pa.array(["x"]).dictionary_encode(),
            }
        ),
        pa.table({"sid": [1.0], "v": [2.5], "name": pa.array(["x"], pa.large_string())}),
        pd.DataFrame([ROW]),
    ],
)
def test_forms(rows: Any) -> None:
    chunk = to_chunk("s", rows, SCHEMA)
    assert chunk.dead == ()
    assert chunk.tuples.schema == SCHEMA.arrow()
    assert chunk.tuples.to_pylist() == [ROW]
    assert chunk.positions.tolist() == [0]


def test_matching_arrow_is_not_copied() -> None:
    table = pa.Table.from_pylist([ROW] * 10, schema=SCHEMA.arrow())
    chunk = RowReader("s", SCHEMA).read(table)
    assert chunk.tuples is table


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"sid": "1"}, "sid: expected int, found '1'"),
        ({"sid": True}, "sid: expected int, found True"),
        ({"sid": 2**31}, "sid: expected int, found 2147483648"),
        ({"sid": 1.5}, "sid: expected int, found 1.5"),
        ({"v": "x"}, "v: expected double, found 'x'"),
        ({"v": True}, "v: expected double, found True"),
        ({"name": 5}, "name: expected string, found 5"),
        ({"name": "\ud800"}, "name: expected string, found '\\ud800'"),
        ({"nam": "x"}, "there is no field nam"),
        ({"sid": 1, "SID": 2}, "the field sid occurs twice"),
        ({5: 1}, "there is no field 5"),
        ((1, 2), "expected 3 values, found 2"),
        (7, "expected a dict or a tuple, found int"),
        ({"sid": float("nan")}, "sid: expected int, found nan"),
    ],
)
def test_a_bad_row_is_a_dead_letter(row: Any, why: str) -> None:
    chunk = to_chunk("s", [ROW, row, ROW], SCHEMA)
    assert chunk.tuples.to_pylist() == [ROW, ROW]
    (letter,) = chunk.dead
    assert (letter.source, letter.place, letter.line, letter.reason) == ("s", "enqueue", None, why)
    letter.row.encode()


def test_missing_is_null() -> None:
    assert to_chunk("s", [{}, {"v": 1}], SCHEMA).tuples.to_pylist() == [
        {"sid": None, "v": None, "name": None},
        {"sid": None, "v": 1.0, "name": None},
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop_columns(["v"]), "missing v"),
        (lambda t: t.append_column("w", t["v"]), "unknown w"),
        (lambda t: t.set_column(0, "sid", pa.array(["1"])), "sid: expected int, found string"),
        (lambda t: t.set_column(2, "name", pa.array([1])), "name: expected string, found int64"),
    ],
)
def test_a_bad_batch_is_refused(change: Callable[[pa.Table], pa.Table], said: str) -> None:
    with pytest.raises(UsageError, match=f"BAD_BATCH.*{said}"):
        to_chunk("s", change(pa.Table.from_pylist([ROW])), SCHEMA)


@pytest.mark.parametrize(
    ("column", "values", "why"),
    [
        ("sid", [1, 2**40, None], f"sid: expected int, found {2**40}"),
        ("sid", [1.0, 1.5, 3.0], "sid: expected int, found 1.5"),
    ],
)
def test_a_bad_value_in_arrow_is_a_dead_letter(column: str, values: list[Any], why: str) -> None:
    table = pa.Table.from_pylist([ROW, ROW, ROW])
    place = table.column_names.index(column)
    chunk = to_chunk("s", table.set_column(place, column, pa.array(values)), SCHEMA)
    assert chunk.tuples[column].to_pylist() == [values[0], values[2]]
    assert [letter.reason for letter in chunk.dead] == [why]


@pytest.mark.parametrize("rows", ["abc", 5, None, b"x"])
def test_no_batch_at_all(rows: Any) -> None:
    with pytest.raises(UsageError, match="BAD_BATCH"):
        to_chunk("s", rows, SCHEMA)


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("timestamp", dt.datetime(2024, 1, 1), "2024-01-01T00:00:00+00:00"),
        ("timestamp", pd.Timestamp("2024-01-01", tz="Europe/Berlin"), "2023-12-31T23:00:00+00:00"),
        ("timestamp", "2024-01-01", "2024-01-01T00:00:00+00:00"),
        ("timestamp", pd.Timestamp(1), None),
        ("timestamp", 5, None),
        ("timestamp_ntz", dt.datetime(2024, 1, 1), "2024-01-01T00:00:00"),
        ("timestamp_ntz", dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None),
        ("date", dt.datetime(2024, 1, 1), None),
    ],
)
def test_times(kind: str, given: Any, value: str | None) -> None:
    chunk = to_chunk("s", [{"t": given}], Schema.parse({"t": kind}))
    found = chunk.tuples.column(0).to_pylist()
    assert [v.isoformat() for v in found] == ([] if value is None else [value])
    assert len(chunk.dead) == (value is None)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_arrow_times(unit: str, zone: str | None) -> None:
    table = pa.table({"t": pa.array([0], pa.timestamp(unit, tz=zone))})
    found = to_chunk("s", table, Schema.parse("t timestamp")).tuples.column(0)
    assert found.cast(pa.int64()).to_pylist() == [0]


def test_double_to_float_must_be_exact() -> None:
    schema = Schema.parse("f float")
    assert to_chunk("s", pa.table({"f": [0.5, None]}), schema).count == 2
    with pytest.raises(UsageError, match="not exact in 32 bits"):
        to_chunk("s", pa.table({"f": [0.1]}), schema)
    assert to_chunk("s", {"f": 0.1}, schema).count == 1


def test_punctuation_and_arrival_in_rows() -> None:
    rows = [{"sid": 1, "_at": 1}, {"_punctuation": 5, "_at": 2.5}, {"sid": 2}]
    chunk = to_chunk("s", rows, SCHEMA, progress_on="sid")
    assert chunk.at_us is not None
    assert chunk.at_us.tolist() == [1_000_000, 2_500_000]
    assert [(p.position, p.value) for p in chunk.punctuations] == [(1, 5)]
    assert chunk.dead[0].reason == "_at is missing"
    table = pa.table({"sid": [1], "v": [1.0], "name": ["x"], "_at": [3], "_punctuation": ["4"]})
    (punctuation,) = to_chunk("s", table, SCHEMA, progress_on="sid").punctuations
    assert punctuation.value == 4


def test_empty() -> None:
    assert to_chunk("s", [], SCHEMA).count == 0
    assert to_chunk("s", SCHEMA.arrow().empty_table(), SCHEMA).count == 0


LOOSE = Schema.parse("sid int, v double")
KEEPING = Schema.parse("sid int, _extra string, v double")
MORE: list[dict[str, Any]] = [
    {"sid": 1, "v": 2.5, "x": 3},
    {"v": 1, "y": [1, "é"], "z": None, "SID": 2},
]


def test_other_fields_are_ignored() -> None:
    """Whether or not rows differ in their fields, in names or in letters."""
    reader = RowReader("s", LOOSE, extra="ignore")
    for rows in (MORE, [MORE[0]], [MORE[1]], MORE * 2, [{**MORE[0], "_AT": 3}]):
        chunk = reader.read(rows)
        assert chunk.dead == ()
        assert [row["sid"] for row in chunk.tuples.to_pylist()] == [
            row.get("sid", row.get("SID")) for row in rows
        ]
    assert reader.read([{**MORE[0], "_AT": 3}]).at_us == [3_000_000]
    assert reader.read([{**MORE[0], "Sid": 3}]).dead[0].reason == "the field sid occurs twice"
    assert reader.read([(1, 2, 3)]).dead[0].reason == "expected 2 values, found 3"
    table = pa.table({"x": [1], "V": [1.0], "sid": [7]})
    assert reader.read(table).tuples.to_pylist() == [{"sid": 7, "v": 1.0}]


def test_other_fields_of_structs_are_ignored() -> None:
    schema = Schema.parse("a struct<b: int, c: array<struct<d: int>>>")
    rows = [{"a": {"b": 1, "x": 2, "c": [{"d": 1, "y": 2}]}}]
    chunk = RowReader("s", schema, extra="ignore").read(rows)
    assert chunk.tuples.to_pylist() == [{"a": {"b": 1, "c": [{"d": 1}]}}]
    assert RowReader("s", schema).read(rows).dead


def test_other_fields_are_kept() -> None:
    reader = RowReader("s", KEEPING, extra="keep")
    assert reader.read([*MORE, {"sid": 3, "_extra": "mine"}, (4, 5.0)]).tuples.to_pylist() == [
        {"sid": 1, "_extra": '{"x": 3}', "v": 2.5},
        {"sid": 2, "_extra": '{"y": [1, "é"]}', "v": 1.0},
        {"sid": 3, "_extra": '{"_extra": "mine"}', "v": None},
        {"sid": 4, "_extra": None, "v": 5.0},
    ]
    table = pa.table({"x": [1, None], "v": [1.0, 2.0], "sid": [7, 8]})
    kept = reader.read(table).tuples.to_pylist()
    assert [row["_extra"] for row in kept] == ['{"x": 1}', None]


@pytest.mark.parametrize(
    ("schema", "extra", "why"),
    [
        (LOOSE, "keep", "extra: keep needs a field to keep the others in, _extra string"),
        (LOOSE, "drop", "extra: expected one of reject, ignore, keep, found 'drop'"),
        (Schema.parse("a int, _extra int"), "keep", "_extra string; the schema is a int"),
    ],
)
def test_what_cannot_be_said_of_other_fields(schema: Schema, extra: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why) as failure:
        RowReader("s", schema, extra=extra)
    assert failure.value.code == "BAD_OPTION"
