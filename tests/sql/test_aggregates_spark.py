"""Spark and the reference agree on aggregates; what Spark leaves to chance is compared loosely."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from auroral.network.types import Schema
from auroral.sql.aggregates.analysis import aggregate_evaluator, analyze_aggregate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema.parse(
    "g int, i int, y tinyint, l bigint, f float, d double, e double, m decimal(8,2), "
    "n decimal(20,6), w decimal(38,18), s string, b boolean, day date, t timestamp"
)
NAN, INF = math.nan, math.inf
TOP = "99999999999999999999.999999999999999999"
# g, i, y, l, f, d, e, m, n, w, s, b
_ROWS: list[tuple[Any, ...]] = [
    (1, 1, 3, 5, 0.5, 0.1, 1.0, "1.10", "1.000001", "1.5", "b", True),
    (1, 2, 6, None, 0.25, 0.2, 2.5, "2.25", None, "2.25", "a", True),
    (1, None, None, 7, None, 0.3, 4.0, None, "3.333333", None, None, None),
    (1, 7, -1, 7, 0.5, 0.3, 3.0, "0.05", "0.000007", "0.1", "c", False),
    (2, None, None, None, None, None, None, None, None, None, None, None),
    (2, None, None, None, None, None, None, None, None, None, None, None),
    (3, 4, 4, 2**63 - 1, 1.5, NAN, 1.0, "999999.99", "9", TOP, "12", False),
    (3, 5, 5, 1, 2.5, 1.0, -1.0, "999999.99", "9", TOP, "x", False),
    (3, 5, 5, -9, 2.5, INF, 2.0, "-0.01", "-9", "-" + TOP, "3.5", None),
    (4, 9, 9, 9, 9.0, 9.0, 9.0, "9", "9", "9", "9", True),
    (5, 3, 1, 1, 1.0, 1.0, 2.0, "0.01", "0.01", "1E-18", "é", None),
    (5, 3, 2, 2, 1.0, 1.0, 4.0, "0.01", "0.02", "2E-18", "z", True),
    (5, 3, 3, 4, 1.0, 1.0, 6.0, "0.00", "0.02", "2E-18", "z", True),
    (6, -5, -128, -(2**63), -1.25, -3.5, 2.5, "-7.55", "-12345678901234.567891", "-2.5", "", False),
    (6, 10, 127, -1, 3.75, 1e300, 1e-3, "7.56", "12345678901234.567892", "2.75", "A", False),
    (6, 11, 0, 0, 0.1, 2.0, -4.0, "0.02", "0", "0.333333333333333333", "a", True),
    (6, 12, 0, 0, 0.1, 2.0, 4.5, "0.02", "0", "0.333333333333333333", "a", True),
]  # fmt: skip
_DECIMALS = {"m": "0.01", "n": "0.000001", "w": "0.000000000000000001"}


def _row(values: tuple[Any, ...]) -> dict[str, Any]:
    row = dict(zip(SCHEMA.names, (*values, None, None), strict=True))
    for name, place in _DECIMALS.items():
        if row[name] is not None:
            row[name] = Decimal(row[name]).quantize(Decimal(place), context=Context(prec=38))
    return row


TEXTS = [
    "count(*)", "count(i)", "count(i, l)", "count(DISTINCT i)", "count(DISTINCT i, s)",
    "count(NULL)",
    "approx_count_distinct(i)", "count_if(b)", "count_if(i > 3)", "regr_count(d, i)",
    "sum(y)", "sum(i)", "sum(l)", "sum(f)", "sum(d)", "sum(m)", "sum(n)", "sum(w)", "sum(s)",
    "sum(DISTINCT i)", "sum(DISTINCT m)", "try_sum(l)", "try_sum(w)", "try_avg(i)",
    "avg(i)", "avg(l)", "avg(f)", "avg(d)", "avg(m)", "avg(n)", "avg(w)", "avg(s)", "mean(y)",
    "avg(DISTINCT i)", "min(i)", "max(d)", "min(d)", "max(s)", "min(b)", "max(m)", "min(w)",
    "max(f)", "first(i)", "last(s)", "first(s, true)", "last(l) IGNORE NULLS", "any_value(i)",
    "max_by(s, e)", "min_by(i, e)", "bool_and(b)", "every(b)", "bool_or(b)", "any(b)", "some(b)",
    "bit_and(y)", "bit_or(i)", "bit_xor(l)", "collect_list(i)", "collect_set(s)", "array_agg(m)",
    "median(i)", "median(e)", "median(m)", "percentile(i, 0.3)", "percentile(d, array(0.1, 0.9))",
    "stddev(i)", "std(e)", "stddev_pop(m)", "variance(f)", "var_pop(i)", "var_samp(s)",
    "skewness(i)", "skewness(e)", "kurtosis(i)", "kurtosis(e)", "corr(i, e)", "corr(d, e)",
    "covar_pop(i, e)", "covar_samp(i, m)", "sum(i) FILTER (WHERE b)", "mode(i, true)",
    "count(DISTINCT s) FILTER (WHERE i > 2)", "sum(i) / count(*) + max(l)", "sum(i + l)",
    "CASE WHEN max(i) BETWEEN 3 AND 9 THEN avg(m) ELSE 0 END",
]  # fmt: skip


@pytest.mark.spark
def test_spark_and_the_reference_agree(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    rows = [_row(values) for values in _ROWS]
    table = pa.Table.from_pylist(rows, schema=SCHEMA.arrow())
    frame = spark.createDataFrame(table, schema=str(SCHEMA)).coalesce(1)
    grouped = frame.groupBy("g").agg(*[F.expr(t).alias(f"c{at}") for at, t in enumerate(TEXTS)])
    found = {row["g"]: row for row in grouped.collect()}
    different: list[str] = []
    for at, text in enumerate(TEXTS):
        ours = str(analyze_aggregate(text, SCHEMA).type)
        theirs = grouped.schema[f"c{at}"].dataType.simpleString()
        if ours != theirs:
            different.append(f"{text}: type {ours}, Spark {theirs}")
        run = aggregate_evaluator(text, SCHEMA)
        for group, row in found.items():
            mine = run([one for one in rows if one["g"] == group])
            if not _same(mine, row[f"c{at}"], text.startswith("collect_set")):
                different.append(f"{text}, group {group}: {mine!r}, Spark {row[f'c{at}']!r}")
    assert not different, "\n".join(different)


def _same(a: Any, b: Any, as_set: bool = False) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list) and isinstance(b, list):
        a, b = (sorted(a), sorted(b)) if as_set else (a, b)
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and bool(a == b)
