"""The eddy on Spark: tasks read the logs, the kernel does the rest."""

from __future__ import annotations

from auroral.boxes.eddy import Eddy
from auroral.eddy.kernel import EddyKernel
from auroral.spark.plans.physical import Given, KernelColumns, Physical


def lower(box: Eddy, given: Given) -> Physical:
    """The fields as they are; which of them are read is decided step by step."""
    columns = [KernelColumns(schema) for schema in given.schemas]
    named = tuple(dict(zip(held.schema.names, held.fields(), strict=True)) for held in columns)
    kernel = EddyKernel(box.inputs, named, given.functions)
    return Physical(kernel, tuple(columns), {}, tuple(() for _ in columns), whole=True)
