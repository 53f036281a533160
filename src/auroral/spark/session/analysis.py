"""Asking Spark's analyzer what it makes of an expression."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from auroral.errors import NetworkError
from auroral.network.box import Resolver
from auroral.network.types import Schema, Type
from auroral.spark.plans.constants import impossible

_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


def spark_schema(schema: Schema) -> StructType:
    parsed = StructType.fromDDL(str(schema)) if len(schema) else StructType([])
    assert isinstance(parsed, StructType)
    return parsed


@contextmanager
def _unlogged() -> Iterator[None]:
    """Spark writes mistakes in queries to standard error, with pages of Java; we tell them."""
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _no_rows(session: SparkSession, schema: Schema) -> DataFrame:
    """Rows that Spark does not know to be none: else it would leave expressions out."""
    java: Any = session._jsparkSession
    context: Any = session.sparkContext._jsc
    nothing = context.parallelize([], 1)
    fields = java.parseDataType(spark_schema(schema).json())
    return DataFrame(java.createDataFrame(nothing, fields), session)


def spark_resolver(session: SparkSession) -> Resolver:
    """Types of expressions that use functions our own catalogue does not know.

    Refuses what cannot be typed, and what cannot be computed whatever the tuple.
    """

    @lru_cache(maxsize=256)
    def rows(schema: Schema) -> DataFrame:
        return _no_rows(session, schema)

    @lru_cache(maxsize=4096)
    def resolve(text: str, schema: Schema) -> Type:
        try:
            with _unlogged():
                chosen = rows(schema).select(F.expr(text))
        except (AnalysisException, ParseException) as error:
            if error.getCondition() == "UNRESOLVED_ROUTINE":
                named = (error.getMessageParameters() or {}).get("routineName", text)
                problem = f"there is no function {named.replace('`', '')}"
                raise NetworkError("UNKNOWN_FUNCTION", problem) from None
            first = str(error).strip().splitlines()[0]
            raise NetworkError("BAD_EXPRESSION", f"Spark refuses {text!r}: {first}") from None
        why = impossible(chosen, text)
        if why is not None:
            raise NetworkError("BAD_EXPRESSION", f"Spark cannot compute {text!r}: {why}")
        return Type.parse(chosen.schema[0].dataType.simpleString())

    return resolve
