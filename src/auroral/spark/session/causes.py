"""Why Spark failed, in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql.utils import get_active_spark_context

from auroral.errors import RunError
from auroral.ids import QueryBoxId

_OF_VALUES = (
    "java.lang.ArithmeticException",
    "java.lang.IllegalArgumentException",
    "java.time.DateTimeException",
    "java.util.zip.DataFormatException",
)
FROM_SPARK = (PySparkException, Py4JError)
FAILURES = (*FROM_SPARK, pa.ArrowException)
"""What a job of Spark's raises here."""
_ENDED = "Python worker exited unexpectedly"
_TRACEBACK = "Traceback (most recent call last):\n"


@contextmanager
def translate_spark_errors(box: str) -> Iterator[None]:
    """Failures of Spark as an error that says which box, of which query, and why."""
    try:
        yield
    except FAILURES as error:
        query = QueryBoxId.query_of(box)
        where = f"box {box}" if query is None else f"query {query}, box {box}"
        raise RunError("SPARK_FAILED", reason(error), where=where) from error


def reason(error: Exception) -> str:
    """The first line of the innermost cause, or the last line of a worker's traceback."""
    cause = _innermost(error)
    text = str(error if cause is None else cause.getMessage() or cause.getClass().getName())
    if is_end_of_worker(error):
        return "a Python worker ended: a function left it, native code crashed, or memory ran out"
    _, found, trace = str(error).partition(_TRACEBACK)
    if found:
        # The last line of a worker's traceback says more than Spark's first.
        text = trace.split("\n\n")[0].strip().splitlines()[-1]
    lines = text.strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def is_end_of_worker(error: Exception) -> bool:
    """Whether a Python worker left without a word."""
    return _ENDED in str(error)


def lies_in_values(error: Exception) -> bool:
    """Whether an expression failed for the values it was given, not for want of a machine."""
    cause = _innermost(error)
    gateway = get_active_spark_context()._gateway
    return cause is not None and any(is_instance_of(gateway, cause, name) for name in _OF_VALUES)


def _innermost(error: Exception) -> Any:
    """The Java exception at the bottom; None if there is none."""
    found: Any = None
    if isinstance(error, Py4JJavaError):
        found = error.java_exception
    elif isinstance(error, CapturedException):
        found = error._origin
    while found is not None and found.getCause() is not None:
        found = found.getCause()
    return found
