"""Streams that Spark's own connectors read: socket, text and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from auroral.errors import UsageError
from auroral.network.types import Schema

_MISSING = "DATA_SOURCE_NOT_FOUND"
_CONNECTORS = {
    "avro": "org.apache.spark:spark-avro_2.13",
    "delta": "io.delta:delta-spark_2.13",
    "hudi": "org.apache.hudi:hudi-spark4.0-bundle_2.13",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13",
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13",
    "mongodb": "org.mongodb.spark:mongo-spark-connector_2.13",
    "pulsar": "io.streamnative.connectors:pulsar-spark-connector_2.13",
}
"""Maven coordinates of connectors that many use, without the version."""


def _missing(kind: str, stream: str) -> UsageError:
    """What to give so that Spark can read a format."""
    version = ".".join(pyspark.__version__.split(".")[:2])
    which = (
        f", {_CONNECTORS[kind]} in the version for Spark {version}," if kind in _CONNECTORS else ""
    )
    return UsageError(
        "UNKNOWN_FORMAT",
        f"neither Auroral nor this Spark can read the format {kind!r}",
        where=f"source of {stream}",
        hint=f"give the jar of its connector{which} with --jars, engine: {{jars: […]}} or"
        " Engine(jars=…)",
    )


def declared_stream(
    session: SparkSession, name: str, spec: Mapping[str, Any], schema: Schema
) -> DataFrame:
    """The stream that a `source:` with a format of Spark's describes.

    Its columns are the schema's fields, or there is a column `value` that holds them as JSON.
    """
    options = {key: value for key, value in spec.items() if key not in ("format", "extra")}
    kind = str(spec["format"])
    reader = session.readStream.format(kind)
    for key, value in options.items():
        reader = reader.option(key, value)
    try:
        frame = reader.load()
    except (PySparkException, Py4JJavaError) as error:
        reason = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
        first = str(reason).strip().splitlines()[0]
        if _MISSING in str(error):
            raise _missing(kind, name) from None
        raise UsageError(
            "BAD_OPTION", f"Spark cannot read {kind}: {first}", where=f"source of {name}"
        ) from None
    columns = {column.lower() for column in frame.columns}
    if all(field.name.lower() in columns for field in schema):
        fields = [F.col(f"`{f.name}`").cast(str(f.type)).alias(f.name) for f in schema]
        return frame.select(*fields)
    if "value" in columns:
        return frame.select(F.col("value").cast("string").alias(JSON_COLUMN))
    raise UsageError(
        "SCHEMA_MISMATCH",
        f"the source has {', '.join(frame.columns)}, the stream needs {schema}",
        where=f"source of {name}",
        hint="the source must give these fields, or a column `value` with JSON",
    )


JSON_COLUMN = "_json"
"""The only column of a stream whose tuples come as JSON text."""
