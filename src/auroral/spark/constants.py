"""Constants in expressions that can never work: patterns, formats, names of zones."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from auroral.spark.causes import lies_in_values, reason
from auroral.sql.parser import parse
from auroral.sql.syntax import Call, Literal, walk

_PATTERNS = frozenset(
    (
        "regexp",
        "regexp_count",
        "regexp_extract",
        "regexp_extract_all",
        "regexp_instr",
        "regexp_like",
        "regexp_replace",
        "regexp_substr",
        "rlike",
        "split",
    )
)


def impossible(session: SparkSession, text: str, schema: StructType) -> str | None:
    """Why an expression that Spark has typed cannot be computed for any tuple; None if it may.

    It is run over no tuples, in one task: generated code makes constant patterns and formats
    before it sees the first. What would be made with the first tuple is made here.
    """
    try:
        _make_constants(session, text)
        rows = _no_rows(session, schema).select(F.expr(text))
        rows._jdf.queryExecution().toRdd().count()
    except (PySparkException, Py4JError) as error:
        return reason(error) if lies_in_values(error) else None
    return None


def _no_rows(session: SparkSession, schema: StructType) -> DataFrame:
    """Rows that Spark does not know to be none: else it would leave expressions out."""
    java: Any = session._jsparkSession
    context: Any = session.sparkContext._jsc
    nothing = context.parallelize([], 1)
    return DataFrame(java.createDataFrame(nothing, java.parseDataType(schema.json())), session)


def _make_constants(session: SparkSession, text: str) -> None:
    jvm: Any = session._jvm
    for node in walk(parse(text)):
        match node:
            case Call(name, (_, Literal(str() as value), *_)) if name in _PATTERNS:
                jvm.java.util.regex.Pattern.compile(value)
            case Call("encode" | "decode", (_, Literal(str() as value))):
                constant = session.range(1).select(F.encode(F.lit(""), value))
                constant._jdf.queryExecution().optimizedPlan()
