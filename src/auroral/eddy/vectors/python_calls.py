"""Calls of Python functions in expressions; a tuple for which one fails is NULL and counted."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from auroral.eddy.vectors.batch import TupleBatch
from auroral.eddy.vectors.computed import Computed
from auroral.eddy.vectors.vector import Vector, from_arrow
from auroral.kernels.calling import called
from auroral.network.types import Type


def call(returns: Type, name: str, args: Sequence[Computed]) -> Computed:
    """A call with one Arrow array for each argument."""
    runs = [arg.run for arg in args]

    def run(batch: TupleBatch) -> Vector:
        if not batch.rows:
            return from_arrow(pa.array([], returns.arrow()), returns)
        arrays = [one(batch).spread(batch.rows).arrow() for one in runs]
        values, failures = called(batch.functions[name].udf, returns, arrays, batch.rows)
        for row, why in failures.items():
            batch.fail(row, why)
        return from_arrow(values, returns)

    return Computed(returns, run, fallible=True)
