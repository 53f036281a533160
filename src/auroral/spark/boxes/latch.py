"""Latch on Spark: arguments as expressions, running values in a kernel, arithmetic after it."""

from __future__ import annotations

from auroral.boxes.latch import Latch
from auroral.kernels.latch import LatchKernel
from auroral.spark.boxes.aggregate import AggregateCalls
from auroral.spark.plans.physical import Given, KernelColumns, Physical, quoted


def lower(box: Latch, given: Given) -> Physical:
    """Keys are spread over buckets; only what the functions read travels."""
    columns = KernelColumns(given.schemas[0])
    by = columns.fields(box.by)
    calls = AggregateCalls.of(box.compute, columns, given)
    kernel = LatchKernel(by, tuple(calls.specs), tuple(calls.arguments), columns.types())
    names = (*by, *(f"agg{n}" for n in range(len(calls.specs))))
    if not calls.outer:
        return Physical(kernel, (columns,), {"": names}, (by,))
    types = [*(columns.texts[name][1] for name in by), *calls.types]
    texts = [*map(quoted, by), *calls.texts]
    return Physical(
        kernel,
        (columns,),
        {"": names},
        (by,),
        compute=dict(zip(given.output.names, texts, strict=True)),
        returns=tuple(zip(names, types, strict=True)),
    )
