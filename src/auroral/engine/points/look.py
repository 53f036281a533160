"""SQL over what is kept: the history of connection points and views, and tables, read by Spark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from auroral.disk import PRIVATE_DIRECTORY
from auroral.engine.points.attaching import beginning
from auroral.engine.points.history import KeptHistory
from auroral.engine.points.point import PointHistory
from auroral.engine.topology.execution import Execution
from auroral.errors import RunError
from auroral.spark.session.causes import FROM_SPARK, reason
from auroral.sql.queries.looking import checked_select, makes_much
from auroral.storage import Segment, Store

_ATTEMPTS = 5
_RULES = "org.apache.spark.sql.catalyst.optimizer"
_WHILE_PLANNING = f"{_RULES}.ConstantFolding,{_RULES}.ConvertToLocalRelation"
"""Rules that compute values outside of tasks. If memory runs out there, the call never returns."""
ReadTable = Callable[[SparkSession], DataFrame]


class KeptRows:
    """Answers one SELECT at a time over what is kept now; nothing is taken or changed."""

    def __init__(self, store: Store, history: KeptHistory, tables: Mapping[str, ReadTable]):
        """`tables` are how the rows of tables become a frame."""
        self._store = store
        self._history = history
        self._tables = tables

    def select(
        self, session: SparkSession, execution: Execution, sql: str, limit: int | None = None
    ) -> pa.Table:
        """The rows of a SELECT over connection points, views and tables."""
        kept = [n for n, point in self._history.points.items() if not point.kept.keeps_nothing]
        text, names = checked_select(sql, [*kept, *self._tables])
        for attempt in count(1):
            own = session.newSession()
            own.conf.set("spark.sql.session.timeZone", "UTC")
            if makes_much(text):
                own.conf.set("spark.sql.optimizer.excludedRules", _WHILE_PLANNING)
            pinned = self._store.directory / f"frame-{uuid4().hex}"  # one left behind is swept
            try:
                for name in names:
                    self._frame(own, execution, name, pinned).createOrReplaceTempView(name)
                found = own.sql(text)
                found = found if limit is None else found.limit(limit)
                return found.toArrow()
            except FROM_SPARK as error:
                raise RunError("BAD_SELECT", reason(error), where="sql") from None
            except FileNotFoundError:
                if attempt == _ATTEMPTS:  # segments have become one meanwhile, or have expired
                    problem = "what is kept changes too fast to be read"
                    raise RunError("BAD_SELECT", problem, where="sql") from None
            finally:
                shutil.rmtree(pinned, ignore_errors=True)
        raise AssertionError("it returns or raises")

    def _frame(
        self, session: SparkSession, execution: Execution, name: str, pinned: Path
    ) -> DataFrame:
        if name in self._tables:
            return self._tables[name](session)
        point = self._history.points[name]
        complete = execution.stepper.emitted_before(point.arc)
        begins = beginning(self._history, point, execution.watermarks, complete, None)
        segments = [
            s for s in self._store.segments(point.arc, begins) if s.file and s.first < complete
        ]
        if not segments:
            return session.createDataFrame(pa.Table.from_batches([], point.schema.arrow()))
        paths = [self._pin(segment, pinned) for segment in segments]
        moment = sf.col("_seq")
        frame = session.read.parquet(*paths).where((moment >= begins) & (moment < complete))
        return frame.select(*_columns(point))

    def _pin(self, segment: Segment, pinned: Path) -> str:
        """A second name of a segment's file, so that it is there until the query has ended."""
        path = self._store.path_of(segment)
        pinned.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
        os.link(path, pinned / path.name)
        return str(pinned / path.name)


def _columns(point: PointHistory) -> list[str]:
    return [f"`{name}`" for name in point.schema.names]


def table_frame(rows: Callable[[], pa.Table]) -> ReadTable:
    """How the rows of a table become a frame."""
    return lambda session: session.createDataFrame(rows())
