"""NiagaraCQ's plans [5 Figure 11] from ordinary Spark joins, and the user-defined selections."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import pandas_udf

_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": str(64 << 20),
    "spark.sql.files.openCostInBytes": "0",
}
Plan = Callable[[DataFrame, DataFrame, DataFrame], DataFrame]
"""What queries give for an update: from stocks, articles and the table of constants."""
Select = Callable[[DataFrame, DataFrame], DataFrame]
"""Tuples with the number of a query, once for each that selects them; from these and constants."""


def plan_session(spark: SparkSession) -> SparkSession:
    """A session for small joins."""
    session = spark.newSession()
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    return session


def constants(session: SparkSession, limits: Sequence[float]) -> DataFrame:
    """The table of constants: which query selects which stocks."""
    rows = [Row(query=number, x=x) for number, x in enumerate(limits)]
    return session.createDataFrame(rows).coalesce(1).cache()


def by_constants(tuples: DataFrame, queries: DataFrame) -> DataFrame:
    """All selections as a join with the constants."""
    return tuples.join(F.broadcast(queries), F.expr("price > x"))


def pull_up(select: Select = by_constants) -> Plan:
    """One join of everything, then all selections."""

    def plan(quotes: DataFrame, news: DataFrame, queries: DataFrame) -> DataFrame:
        return select(quotes.join(F.broadcast(news), "symbol"), queries)

    return plan


def push_down(count: int, select: Select = by_constants) -> Plan:
    """All selections, split by query, and a join for each query."""

    def plan(quotes: DataFrame, news: DataFrame, queries: DataFrame) -> DataFrame:
        selected = select(quotes, queries).cache()
        # The hash table over articles is shared: Spark broadcasts it once for all joins.
        branches = (
            selected.where(F.col("query") == number).join(F.broadcast(news), "symbol")
            for number in range(count)
        )
        return reduce(DataFrame.unionAll, branches)

    return plan


def finish(frame: DataFrame) -> int:
    """Produce every result, count it and discard it, as the paper does."""
    seen = Observation()
    counted = frame.observe(seen, F.count(F.lit(1)).alias("results"))
    counted.write.format("noop").mode("overwrite").save()
    return int(seen.get["results"])


# ── selections by Python functions ──


def spin_above(limit: float, least_us: float, most_us: float) -> Callable[[pa.Array], pa.Array]:
    """`price > limit` by a function that spins for some microseconds per price."""

    def interesting(price: pa.Array) -> pa.Array:
        return pa.array([_spin(value, limit, least_us, most_us) for value in price.to_pylist()])

    return interesting


def by_functions(limits: Sequence[float], least_us: float, most_us: float) -> Select:
    """The functions of all queries in one pass."""

    def test(limit: float) -> Any:
        def interesting(price: pd.Series) -> pd.Series:
            return pd.Series([_spin(value, limit, least_us, most_us) for value in price])

        return pandas_udf(interesting, "boolean")  # type: ignore[call-overload]

    tests = [test(limit) for limit in limits]

    def select(tuples: DataFrame, _queries: DataFrame) -> DataFrame:
        selected = [
            F.when(one("price"), F.lit(number)).alias(f"q{number}")
            for number, one in enumerate(tests)
        ]
        queries = F.explode(F.array_compact(F.array(*selected)))
        return tuples.select("*", queries.alias("query"))

    return select


def _spin(price: float, limit: float, least_us: float, most_us: float) -> bool:
    until = time.perf_counter() + random.uniform(least_us, most_us) * 1e-6
    while time.perf_counter() < until:
        pass
    return price > limit
