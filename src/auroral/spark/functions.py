"""Calling Python functions from a plan: over Arrow, and never failing a train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf

from auroral.kernels.calling import called
from auroral.kernels.shelter import sheltering
from auroral.network.function import Function, load_named
from auroral.network.network import Network
from auroral.network.types import Field, Schema, Type
from auroral.spark.frame import Condition, Frame, Lane
from auroral.spark.sheltering import is_asked

_STRING = Type("string")
_BOOLEAN = Type("boolean")


@dataclass(frozen=True)
class Failures:
    """The tuples for which a function raised: where, why, and the tuple as JSON."""

    lane: Lane
    condition: Condition
    reason: str
    row: str


def call(
    how: Function, lane: Lane, frame: Frame, returns: Type, network: Network
) -> tuple[str, Failures]:
    """The column of results, and the tuples that failed.

    The function sees the lane's rows only; where it raises on a batch it is tried row by row.
    """
    fields = tuple(Field(name, frame.type_of(column)) for name, column in lane.columns.items())
    arguments = how.arguments(Schema(fields), network.directory, imports=network.imports)
    apply = _applier(how.udf, returns, str(network.directory) if network.directory else None)
    result = arrow_udf(apply, f"struct<value:{returns},error:string>")  # type: ignore[call-overload]
    # Or Spark would evaluate it once for the filter and once more for the result.
    result = result.asNondeterministic()
    belongs = F.expr(lane.condition_sql())
    columns = [F.col(lane.columns[name]) for name in arguments]
    both = Type("struct", children=(Field("value", returns), Field("error", _STRING)))
    pair = frame.add(result(belongs, *columns), both)
    value = frame.add(F.col(f"{pair}.value"), returns)
    reason = frame.add(F.col(f"{pair}.error"), _STRING)
    failed = frame.add(F.expr(f"{pair}.error IS NOT NULL"), _BOOLEAN)
    named = [F.col(column).alias(name) for name, column in lane.columns.items()]
    row = frame.add(F.when(F.col(failed), F.to_json(F.struct(*named))), _STRING)
    condition = Condition(failed)
    return value, Failures(lane.where(condition), condition, reason, row)


def _applier(target: Any, returns: Type, directory: str | None) -> Callable[..., pa.Array]:
    def apply(belongs: pa.Array, *columns: pa.Array) -> pa.Array:
        function = target
        if isinstance(target, str):
            function = load_named(target, Path(directory) if directory else None)
        with sheltering(is_asked()):
            return applied(function, returns, belongs, columns)

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
