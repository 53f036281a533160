"""Streams that Spark's own connectors read: kafka, socket, text and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from auroral.errors import UsageError
from auroral.network.types import Schema

_RENAMED = {"kafka": {"topic": "subscribe", "servers": "kafka.bootstrap.servers"}}


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
        reader = reader.option(_RENAMED.get(kind, {}).get(key, key), value)
    try:
        frame = reader.load()
    except (PySparkException, Py4JJavaError) as error:
        reason = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
        first = str(reason).strip().splitlines()[0]
        raise UsageError(
            "UNKNOWN_FORMAT",
            f"neither Auroral nor Spark can read the format {kind!r}: {first}",
            where=f"source of {name}",
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
