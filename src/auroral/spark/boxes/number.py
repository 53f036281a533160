"""Number on Spark: one bucket, since a stream has one order of arrival."""

from __future__ import annotations

from auroral.boxes.number import Number
from auroral.kernels.number import NumberKernel
from auroral.spark.plans.physical import Given, KernelColumns, Physical


def lower(_box: Number, given: Given) -> Physical:
    """The fields as they are, then the number."""
    columns = KernelColumns(given.schemas[0])
    fields = columns.fields()
    return Physical(NumberKernel(fields), (columns,), {"": (*fields, "number")})
