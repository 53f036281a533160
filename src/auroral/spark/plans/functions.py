"""Calling Python functions from a plan: over Arrow, and never failing a train."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf

from auroral.boxes import Filter, Map
from auroral.kernels.calling import called
from auroral.kernels.shelter import sheltering
from auroral.network.check import what_boxes_see
from auroral.network.function import Function, load_named
from auroral.network.network import Network
from auroral.network.types import Field, Type
from auroral.spark.plans.frame import Frame, Lane, LaneCondition
from auroral.spark.running.sheltering import is_asked
from auroral.spark.session.analysis import spark_resolver
from auroral.sql.expressions.function_calls import called_of

_STRING = Type("string")
_BOOLEAN = Type("boolean")


@dataclass(frozen=True)
class FunctionFailures:
    """The tuples for which a function raised: where, why, and the tuple as a struct."""

    lane: Lane
    condition: LaneCondition
    reason: str
    row: str
    spent_s: Accumulator[float]
    """The seconds that tasks have spent in the function since the plan was compiled."""


def call(
    how: Function, lane: Lane, frame: Frame, returns: Type, network: Network
) -> tuple[str, FunctionFailures]:
    """The column of results, and the tuples that failed.

    The function sees the lane's rows only; where it raises on a batch it is tried row by row.
    """
    schema = frame.schema(lane)
    arguments = how.arguments(schema, network.directory, imports=network.imports)
    columns = [lane.columns[name] for name in arguments]
    return _called(how, columns, lane, frame, returns, network)


def evaluate(
    box: Filter | Map,
    texts: Sequence[tuple[str, Type]],
    lane: Lane,
    frame: Frame,
    network: Network,
    *,
    instead: bool | None = None,
) -> tuple[list[str], list[FunctionFailures]]:
    """The columns of a box's expressions, and the tuples for which a function in them failed.

    Every call is made for every tuple of the lane for which those before it did not fail.
    """
    functions = {name.lower(): how for name, how in network.functions.items()}
    if not any(called_of(text, functions) for text, _ in texts):
        return frame.evaluate(lane, texts, instead=instead), []
    resolver = spark_resolver(frame.data.sparkSession)
    calls = box.calls(frame.schema(lane), what_boxes_see(network, resolver))
    known, good, failures = lane, lane, list[FunctionFailures]()
    for call in calls.calls:
        args = frame.evaluate(known, [(arg.text, arg.type) for arg in call.args])
        how = functions[call.function]
        value, failed = _called(how, args, good, frame, call.returns, network)
        failures.append(failed)
        good = without(good, [failed])
        known = replace(known, columns={**known.columns, call.column: value})
    wanted = [(one.text, one.type) for one in calls.expressions]
    return frame.evaluate(known, wanted, instead=instead), failures


def without(lane: Lane, failures: Sequence[FunctionFailures]) -> Lane:
    """The lane without tuples that failed."""
    return lane.where(*(LaneCondition(one.condition.column, holds=False) for one in failures))


def _called(
    how: Function, columns: Sequence[str], lane: Lane, frame: Frame, returns: Type, network: Network
) -> tuple[str, FunctionFailures]:
    """The results of a function of some columns, for the rows of a lane."""
    directory = str(network.directory) if network.directory else None
    belongs = F.expr(lane.condition_sql())
    both = Type("struct", children=(Field("value", returns), Field("error", _STRING)))
    spent_s: Accumulator[float] = frame.data.sparkSession.sparkContext.accumulator(0.0)
    made = result_column(
        how.udf, returns, belongs, list(map(F.col, columns)), directory, spent_s=spent_s
    )
    pair = frame.add(made, both)
    value = frame.add(F.col(f"{pair}.value"), returns)
    reason = frame.add(F.col(f"{pair}.error"), _STRING)
    failed = frame.add(F.expr(f"{pair}.error IS NOT NULL"), _BOOLEAN)
    named = [F.col(column).alias(name) for name, column in lane.columns.items()]
    whole = Type("struct", children=frame.schema(lane).fields)
    row = frame.add(F.when(F.col(failed), F.struct(*named)), whole)
    condition = LaneCondition(failed)
    return value, FunctionFailures(lane.where(condition), condition, reason, row, spent_s)


def result_column(
    target: str | Callable[..., Any],
    returns: Type,
    belongs: Column,
    args: Sequence[Column],
    directory: str | None = None,
    *,
    spent_s: Accumulator[float] | None = None,
) -> Column:
    """A struct of value and error: what a function gives for the rows that belong.

    The time that it takes is added to `spent_s`.
    """
    apply = _applier(target, returns, directory, spent_s)
    result = arrow_udf(apply, f"struct<value:{returns},error:string>")  # type: ignore[call-overload]
    # Or Spark would evaluate it once for the filter and once more for the result.
    made: Column = result.asNondeterministic()(belongs, *args)
    return made


def _applier(
    target: Any, returns: Type, directory: str | None, spent_s: Accumulator[float] | None
) -> Callable[..., pa.Array]:
    def apply(belongs: pa.Array, *columns: pa.Array) -> pa.Array:
        function = target
        if isinstance(target, str):
            function = load_named(target, Path(directory) if directory else None)
        began = time.perf_counter()
        try:
            with sheltering(is_asked()):
                return applied(function, returns, belongs, columns)
        finally:
            if spent_s is not None:
                spent_s.add(time.perf_counter() - began)

    return apply


def applied(
    function: Callable[..., Any],
    returns: Type,
    belongs: pa.Array,
    columns: tuple[pa.Array, ...],
) -> pa.Array:
    """The struct of value and error for each row; rows that do not belong get NULL."""
    chosen = [column.filter(belongs) for column in columns]
    count = belongs.true_count
    values, errors = pa.nulls(count, returns.arrow()), pa.nulls(count, pa.string())
    if count:
        values, failures = called(function, returns, chosen, count)
        if failures:
            errors = pa.array([failures.get(row) for row in range(count)], pa.string())
    if count < len(belongs):
        positions = _positions(belongs)
        values, errors = values.take(positions), errors.take(positions)
    return pa.StructArray.from_arrays([values, errors], ["value", "error"])


def _positions(belongs: pa.Array) -> pa.Array:
    """For each row its place among those that belong, or NULL."""
    mask = belongs.to_numpy(zero_copy_only=False)
    return pa.array(np.cumsum(mask) - 1, mask=~mask)
