"""The rows and the judge of the conformance tests: Spark and the reference must agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from auroral.errors import NetworkError, RunError
from auroral.network.types import Schema
from auroral.sql.expressions.expression import analyze, evaluator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHUNK = 60
SCHEMA = Schema.parse(
    "b boolean, ty tinyint, sm smallint, i int, j int, l bigint, f float, d double, e double, "
    "dec decimal(10,2), big decimal(38,18), s string, u string, n string, bin binary, "
    "day date, day2 date, t timestamp, t2 timestamp, tn timestamp_ntz, "
    "st struct<a:int,b:string>, arr array<int>, words array<string>, m map<string,int>"
)


def _utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def _row(*values: Any) -> dict[str, Any]:
    return dict(zip(SCHEMA.names, values, strict=True))


ROWS: list[dict[str, Any]] = [
    _row(*[None] * len(SCHEMA)),
    _row(
        True, 1, 2, 3, -4, 5, 1.5, 2.5, -0.5, Decimal("12.34"), Decimal("1.5"),
        "abc", "Hello World", "12", b"abc", date(2024, 2, 29), date(2023, 3, 1),
        _utc(2024, 2, 29, 12, 34, 56, 789012), _utc(2024, 1, 1), datetime(2024, 2, 29, 1, 2, 3),
        {"a": 1, "b": "x"}, [1, 2, None], ["a", "b"], {"k": 1, "z": None},
    ),
    _row(
        False, -128, -32768, -(2**31), -1, -(2**63), math.nan, math.nan, math.inf,
        Decimal("-99999999.99"), Decimal("-12345678901234567890.123456789012345678"),
        "", "  spaces  ", " -3.7 ", b"", date(1969, 12, 31), date(1, 6, 30),
        _utc(1969, 12, 31, 23, 59, 59, 999999), _utc(1, 6, 30), datetime(1969, 7, 20, 20, 17, 40),
        {"a": None, "b": None}, [], [], {},
    ),
    _row(
        True, 127, 32767, 2**31 - 1, 7, 2**63 - 1, math.inf, -math.inf, math.nan,
        Decimal("0.00"), Decimal("0E-18"), "ünïcödé ß", "日本語😀", "NaN", b"\xff\x00\x7f",
        date(2000, 12, 31), date(1900, 2, 28), _utc(1900, 2, 28, 23, 59, 59), _utc(2100, 1, 1),
        datetime(9999, 12, 31, 23, 59, 59, 999999),
        {"a": 2**31 - 1, "b": ""}, [5], [None, "ß"], {"": 0},
    ),
    _row(
        False, 0, 0, 0, 0, 0, -0.0, 0.0, -0.0, Decimal("0.05"), Decimal("1E-18"),
        "a_b%c\\d", "the quick, brown; fox", "2024-02-29", b"\x00", date(1970, 1, 1),
        date(2024, 12, 31), _utc(1970, 1, 1), _utc(2024, 12, 31, 23, 59, 59, 1),
        datetime(1970, 1, 1), {"a": 0, "b": "y"}, [None], ["abc"], {"k": -5},
    ),
    _row(
        None, 7, -3, 2, 3, 4, 0.1, 1e300, 1e-300, Decimal("7.50"), Decimal("3.000000000000000001"),
        "2024-03-10 01:02:03.5", "x=1,y=22", "true", b"\xe6\x97\xa5", date(2023, 1, 1),
        date(2024, 1, 31), _utc(2023, 1, 1, 0, 0, 1), _utc(2038, 1, 19, 3, 14, 7),
        datetime(2024, 2, 29, 23, 59, 59, 500000), None, None, None, None,
    ),
    _row(
        True, -7, 100, -5, 3, -12, -3.75, -2.5, 3.5, Decimal("-7.55"), Decimal("-2.5"),
        "AbC dEf", "tab\tand\nline", "1e3", b"xyz", date(1582, 10, 15), date(1582, 10, 4),
        _utc(1582, 10, 15, 5), _utc(1582, 10, 4, 23), datetime(1, 1, 2),
        {"a": -1, "b": "NULL"}, [3, 1, 2], ["", "x,y"], {"a": 1, "b": 2},
    ),
    _row(
        True, 5, 5, 1_000_000, 1_000_000, 123456789012, 16777216.0, 123456789.125, 0.001,
        Decimal("99999999.99"), Decimal("99999999999999999999.999999999999999999"),
        "aaa", "aXbXc", "+0012.", b"\x01\x02", date(9999, 12, 31), date(2020, 2, 29),
        _utc(9999, 12, 31, 23, 59, 59, 999999), _utc(2020, 2, 29, 6),
        datetime(2020, 2, 29, 6, 0, 0, 1), {"a": 9, "b": "😀"}, [9, 9], ["9"], {"k": 9},
    ),
]  # fmt: skip


class Judge:
    """Compares the reference with Spark, many expressions in one job."""

    def __init__(self, spark: SparkSession):
        table = pa.Table.from_pylist(
            [{**row, "m": row["m"] and list(row["m"].items())} for row in ROWS],
            schema=SCHEMA.arrow(),
        )
        self.frame = spark.createDataFrame(table, schema=str(SCHEMA)).coalesce(1).cache()
        self.frame.count()

    def differences(self, texts: Sequence[str]) -> list[str]:
        """What differs in type or value, one line each; every text must be accepted by both."""
        found: list[str] = []
        for start in range(0, len(texts), CHUNK):
            found += self._chunk(texts[start : start + CHUNK])
        return found

    def accepts(self, text: str) -> bool:
        """Whether Spark's analyzer takes the expression."""
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as F  # noqa: N812

        try:
            self.frame.select(F.expr(text).alias("x"))
        except PySparkException:
            return False
        return True

    def _chunk(self, texts: Sequence[str]) -> list[str]:
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as F  # noqa: N812

        try:
            selected = self.frame.select(
                *[F.expr(text).alias(f"c{at}") for at, text in enumerate(texts)]
            )
            table = selected.toArrow()
        except PySparkException as error:
            if len(texts) == 1:
                return [f"{texts[0]}: Spark fails: {str(error)[:150]}"]
            half = len(texts) // 2
            return self._chunk(texts[:half]) + self._chunk(texts[half:])
        found: list[str] = []
        for at, text in enumerate(texts):
            theirs = selected.schema[f"c{at}"].dataType.simpleString()
            try:
                ours = str(analyze(text, SCHEMA).type)
                run = evaluator(text, SCHEMA)
                values = [_value(partial(run, row)) for row in ROWS]
            except NetworkError as error:
                found.append(f"{text}: refused: {error}")
                continue
            if ours != theirs:
                found.append(f"{text}: type {ours}, Spark {theirs}")
            theirs_of = [_value(cell.as_py) for cell in table[f"c{at}"]]
            for number, (mine, spark) in enumerate(zip(values, theirs_of, strict=True)):
                if not same(mine, spark):
                    found.append(f"{text}: row {number}: {mine!r}, Spark {spark!r}")
        return found


def _value(get: Callable[[], Any]) -> Any:
    """The value, or a mark that Python has no such date or timestamp."""
    try:
        return get()
    except (OverflowError, ValueError):
        return "out of range"
    except RunError as error:
        return "out of range" if error.code == "OUT_OF_RANGE" else error.code


def same(a: Any, b: Any) -> bool:
    """Equal, floats to nine digits and with their zero's sign."""
    if isinstance(a, float) and isinstance(b, float):
        if a == b:
            return math.copysign(1, a) == math.copysign(1, b)
        if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
            return math.isnan(a) and math.isnan(b)
        return math.isclose(a, b, rel_tol=1e-9)
    if isinstance(a, dict) and isinstance(b, list):
        return list(a.items()) == b
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)


@pytest.fixture(scope="session")
def judge(spark: SparkSession) -> Judge:
    return Judge(spark)


@pytest.fixture(scope="session")
def schema() -> Schema:
    return SCHEMA
