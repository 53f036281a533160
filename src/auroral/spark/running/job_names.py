"""Names for Spark jobs, by which another thread can end them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


@contextmanager
def named_jobs(session: SparkSession, name: str | None) -> Iterator[None]:
    """Run the jobs of this thread under a name of their own."""
    if name is None:
        yield
        return
    context = session.sparkContext
    context.setJobGroup(name, name, interruptOnCancel=True)
    try:
        yield
    finally:
        for one in _PROPERTIES:
            context.setLocalProperty(one, None)  # type: ignore[arg-type]


def cancel_jobs(session: SparkSession, name: str) -> None:
    """End the jobs of a name, and let no other begin under it."""
    session.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(name)
