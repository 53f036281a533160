"""Asking Spark's analyzer what it makes of an expression."""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from auroral.errors import NetworkError
from auroral.network.box import Resolver
from auroral.network.types import Schema, Type


def spark_schema(schema: Schema) -> StructType:
    parsed = StructType.fromDDL(str(schema)) if len(schema) else StructType([])
    assert isinstance(parsed, StructType)
    return parsed


def spark_resolver(session: SparkSession) -> Resolver:
    """Types of expressions that use functions our own catalogue does not know."""

    def resolve(text: str, schema: Schema) -> Type:
        try:
            frame = session.createDataFrame([], spark_schema(schema)).select(F.expr(text))
        except (AnalysisException, ParseException) as error:
            first = str(error).strip().splitlines()[0]
            raise NetworkError("BAD_EXPRESSION", f"Spark refuses {text!r}: {first}") from None
        return Type.parse(frame.schema[0].dataType.simpleString())

    return resolve
