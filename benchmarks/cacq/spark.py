"""Plain Spark counting the matches of many queries, in every way a good user may think of.

But for `stream_each` these are batch jobs over Parquet files: a micro-batch of Structured
Streaming does the same and more.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.cacq.data import FIELDS, Conjunction, Queries, condition

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
    """A way of counting."""

    name: str
    queries: Queries
    count: Count
    wide: bool = False
    share: float = 1.0
    """Of a train, so that a slow way ends."""


@dataclass(frozen=True)
class Counted:
    """What one way gave."""

    way: Way
    tuples: int
    seconds: float
    """For so many tuples, a run of many."""
    counts: list[int]

    @property
    def rate(self) -> float:
        return self.tuples / self.seconds


def sum_cases(frame: DataFrame, queries: Sequence[Conjunction]) -> list[int]:
    """One select with a sum for each query."""
    return _one_select(frame, [f"sum(case when {condition(q)} then 1 else 0 end)" for q in queries])


def count_cases(frame: DataFrame, queries: Sequence[Conjunction]) -> list[int]:
    """One select with a count for each query."""
    return _one_select(frame, [f"count(case when {condition(q)} then 1 end)" for q in queries])


def count_ifs(frame: DataFrame, queries: Sequence[Conjunction]) -> list[int]:
    """One select as it is most easily written."""
    return _one_select(frame, [f"count_if({condition(q)})" for q in queries])


def _one_select(frame: DataFrame, columns: Sequence[str]) -> list[int]:
    named = (f"{column} as q{number}" for number, column in enumerate(columns))
    return [int(value) for value in frame.selectExpr(*named).collect()[0]]


def sum_cases_in_parts(frame: DataFrame, queries: Sequence[Conjunction]) -> list[int]:
    """Selects with ten sums each, which generated code can hold."""
    counts: list[int] = []
    for at in range(0, len(queries), _AT_A_TIME):
        counts += sum_cases(frame, queries[at : at + _AT_A_TIME])
    return counts


def stream_each(frame: DataFrame, queries: Sequence[Conjunction]) -> list[int]:
    """A streaming query for each; what they find goes nowhere, and is counted on the way."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        (place / "in").mkdir()
        for number, uri in enumerate(sorted(frame.inputFiles())):
            os.link(unquote(urlparse(uri).path), place / "in" / f"{number}.parquet")
        stream = frame.sparkSession.readStream.schema(frame.schema).parquet(str(place / "in"))
        started = [
            stream.where(condition(query))
            .observe("matched", F.count(F.lit(1)).alias("count"))
            .writeStream.format("noop")
            .option("checkpointLocation", str(place / f"state{number}"))
            .trigger(availableNow=True)
            .start()
            for number, query in enumerate(queries)
        ]
        for query in started:
            query.awaitTermination()
        return [
            sum(told.observedMetrics["matched"]["count"] for told in query.recentProgress)
            for query in started
        ]


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
    Way("a writeStream for each query", "each", stream_each),
    Way("a job with a filter for each query", "each", filter_each),
    Way("one select of 100 count_if", "merged", count_ifs, share=0.5),
    Way("one select of 100 sums of case when", "merged", sum_cases),
    Way("one select of 100 counts of case when", "merged", count_cases),
    Way("the same, limits of code generation lifted", "merged", count_cases, wide=True),
    Way("ten selects of ten sums", "merged", sum_cases_in_parts),
    Way("join with a table of ranges", "merged", join_rules),
    Way("explode an array of matches", "merged", match_lists, share=0.25),
    Way("numpy by hand in mapInArrow", "by hand", numpy_by_hand),
)


def run_ways(
    spark: SparkSession,
    files: Sequence[str],
    rows: int,
    queries: Sequence[Conjunction],
    warm_s: float,
    timed_s: float,
) -> list[Counted]:
    """Count in every way over a train, given as files of so many tuples each.

    A way runs for some time, and at least once, to become warm, and then to be timed.
    """
    results = []
    for way in WAYS:
        session = spark.newSession()
        for key, value in (_SETTINGS | (_WIDE if way.wide else {})).items():
            session.conf.set(key, value)
        some = files[: max(int(len(files) * way.share), 1)]
        frame = session.read.parquet(*some)
        _repeat(way, frame, queries, warm_s)
        runs, taken, counts = _repeat(way, frame, queries, timed_s)
        results.append(Counted(way, len(some) * rows, taken / runs, counts))
    return results


def _repeat(
    way: Way, frame: DataFrame, queries: Sequence[Conjunction], seconds: float
) -> tuple[int, float, list[int]]:
    """Runs, what they took together, and what the last one counted."""
    started = time.perf_counter()
    runs = 0
    while True:
        counts = way.count(frame, queries)
        runs += 1
        taken = time.perf_counter() - started
        if taken >= seconds:
            return runs, taken, counts


def _ranges(query: Conjunction) -> dict[str, int]:
    """The query as a closed range of each field."""
    ranges = {f"{field}_{end}": value for field in FIELDS for end, value in _ENDS}
    for predicate in query:
        end = "low" if predicate.op.startswith(">") else "high"
        strict = {">": 1, "<": -1}.get(predicate.op, 0)
        ranges[f"{predicate.field}_{end}"] = predicate.constant + strict
    return ranges
