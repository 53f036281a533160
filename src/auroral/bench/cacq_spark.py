"""Plain Spark counting the matches of many queries, in every way a good user may think of.

Batch jobs over Parquet files: a micro-batch of Structured Streaming does the same and more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from auroral.bench.cacq_data import FIELDS, Conjunction, condition

_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.files.openCostInBytes": "0",
}
_WIDE = {
    "spark.sql.codegen.maxFields": "100000",
    "spark.sql.codegen.hugeMethodLimit": str(1 << 30),
}
_AT_A_TIME = 10
_ENDS = (("low", -(2**31)), ("high", 2**31 - 1))

Count = Callable[[DataFrame, Sequence[Conjunction]], list[int]]


@dataclass(frozen=True)
class Way:
    """A way of counting; one with numpy by hand is Spark only as far as data are carried."""

    name: str
    count: Count
    wide: bool = False
    by_hand: bool = False
    share: float = 1.0
    """Of the tuples, so that a slow way ends."""


@dataclass(frozen=True)
class Counted:
    """What one way gave."""

    way: Way
    tuples: int
    seconds: float
    counts: list[int]

    @property
    def rate(self) -> float:
        return self.tuples / self.seconds


def sum_cases(frame: DataFrame, queries: Sequence[Conjunction]) -> list[int]:
    """One select with a sum for each query."""
    sums = (
        f"sum(case when {condition(query)} then 1 else 0 end) as q{number}"
        for number, query in enumerate(queries)
    )
    return [int(value) for value in frame.selectExpr(*sums).collect()[0]]


def sum_cases_in_parts(frame: DataFrame, queries: Sequence[Conjunction]) -> list[int]:
    """Selects with ten sums each, which generated code can hold."""
    counts: list[int] = []
    for at in range(0, len(queries), _AT_A_TIME):
        counts += sum_cases(frame, queries[at : at + _AT_A_TIME])
    return counts


def filter_each(frame: DataFrame, queries: Sequence[Conjunction]) -> list[int]:
    """A job for each query."""
    return [frame.where(condition(query)).count() for query in queries]


def join_rules(frame: DataFrame, queries: Sequence[Conjunction]) -> list[int]:
    """A join with a table of the queries' ranges, and a count of each query."""
    spark = frame.sparkSession
    rules = spark.createDataFrame(
        [Row(query=number, **_ranges(query)) for number, query in enumerate(queries)]
    )
    within = " and ".join(f"{f} >= {f}_low and {f} <= {f}_high" for f in FIELDS)
    joined = frame.join(F.broadcast(rules), F.expr(within))
    found = {row["query"]: row["count"] for row in joined.groupBy("query").count().collect()}
    return [found.get(number, 0) for number in range(len(queries))]


def match_lists(frame: DataFrame, queries: Sequence[Conjunction]) -> list[int]:
    """An array of the queries that match each tuple, exploded and counted."""
    cases = ", ".join(
        f"if({condition(query)}, {number}, null)" for number, query in enumerate(queries)
    )
    lists = frame.selectExpr(f"explode(array_compact(array({cases}))) as query")
    found = {row["query"]: row["count"] for row in lists.groupBy("query").count().collect()}
    return [found.get(number, 0) for number in range(len(queries))]


def numpy_by_hand(frame: DataFrame, queries: Sequence[Conjunction]) -> list[int]:
    """Arrow batches to Python, counted by numpy there."""
    tests = [[(p.field, p.op, p.constant) for p in query] for query in queries]

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        compare = {"<": np.less, ">": np.greater, "<=": np.less_equal, ">=": np.greater_equal}
        totals = np.zeros(len(tests), dtype=np.int64)
        for batch in batches:
            columns = {name: batch[name].to_numpy() for name in FIELDS}
            for number, test in enumerate(tests):
                matched = np.ones(batch.num_rows, dtype=bool)
                for field, op, constant in test:
                    matched &= compare[op](columns[field], constant)
                totals[number] += np.count_nonzero(matched)
        yield pa.RecordBatch.from_arrays([pa.array([totals.tolist()])], ["totals"])

    counted = frame.select(*FIELDS).mapInArrow(count, "totals array<bigint>")
    each = [row["totals"] for row in counted.collect()]
    return [sum(values) for values in zip(*each, strict=True)]


WAYS = (
    Way("one select, 100 sums of case when", sum_cases, share=0.25),
    Way("one select, limits of code generation lifted", sum_cases, wide=True, share=0.25),
    Way("ten selects of ten sums", sum_cases_in_parts),
    Way("a job with a filter for each query", filter_each, share=0.5),
    Way("join with a table of ranges", join_rules, share=0.25),
    Way("explode an array of matches", match_lists, share=0.25),
    Way("numpy by hand in mapInArrow", numpy_by_hand, by_hand=True),
)


def run_ways(
    spark: SparkSession, files: Sequence[str], rows: int, queries: Sequence[Conjunction]
) -> list[Counted]:
    """Count in every way over files of so many tuples each; the second of two runs is timed."""
    results = []
    for way in WAYS:
        session = spark.newSession()
        for key, value in (_SETTINGS | (_WIDE if way.wide else {})).items():
            session.conf.set(key, value)
        some = files[: max(int(len(files) * way.share), 1)]
        frame = session.read.parquet(*some)
        way.count(session.read.parquet(some[0]), queries)
        started = time.perf_counter()
        counts = way.count(frame, queries)
        seconds = time.perf_counter() - started
        results.append(Counted(way, len(some) * rows, seconds, counts))
    return results


def _ranges(query: Conjunction) -> dict[str, int]:
    """The query as a closed range of each field."""
    ranges = {f"{field}_{end}": value for field in FIELDS for end, value in _ENDS}
    for predicate in query:
        end = "low" if predicate.op.startswith(">") else "high"
        strict = {">": 1, "<": -1}.get(predicate.op, 0)
        ranges[f"{predicate.field}_{end}"] = predicate.constant + strict
    return ranges
