"""A step in which a Python worker ended is run again, with functions in processes of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark import TaskContext
from pyspark.sql import SparkSession

from auroral.spark.session.causes import FAILURES, is_end_of_worker

_PROPERTY = "auroral.sheltered"
"""Tells tasks, also those of plans that are compiled already."""
T = TypeVar("T")


def is_asked() -> bool:
    """Whether a task is to call functions in processes of their own."""
    context = TaskContext.get()
    return context is not None and context.getLocalProperty(_PROPERTY) is not None


class Shelter:
    """Runs jobs of superboxes; one that has lost a worker stays sheltered.

    The function that ended it will do so again, and a new worker takes a second to start.
    """

    def __init__(self, session: SparkSession):
        self._session = session
        self._needing: set[str] = set()

    def run(self, superbox: str, job: Callable[[], T]) -> T:
        """Run a job that changes nothing until it has succeeded."""
        if superbox not in self._needing:
            try:
                return job()
            except FAILURES as error:
                if not is_end_of_worker(error):
                    raise
                self._needing.add(superbox)
        context = self._session.sparkContext
        context.setLocalProperty(_PROPERTY, "yes")
        try:
            return job()
        finally:
            context.setLocalProperty(_PROPERTY, None)  # type: ignore[arg-type]
