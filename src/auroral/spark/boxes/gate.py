"""Gate on Spark: a kernel without state, so tuples may go to any bucket."""

from __future__ import annotations

from auroral.boxes.gate import Gate
from auroral.kernels.arrivals import InputOrder
from auroral.kernels.gate import GateKernel
from auroral.spark.plans.physical import Given, KernelColumns, Physical, mark_fields


def lower(box: Gate, given: Given) -> Physical:
    """Tuples are spread by the first field they are judged by."""
    columns = KernelColumns(given.schemas[0])
    fields = columns.fields()
    orders = tuple(
        InputOrder(columns.field(order.on), by_mark=columns.fields(mark_fields(mark)))
        for order, mark in zip(box.orders, given.marks, strict=True)
    )
    kernel = GateKernel(orders, fields, fields if "late" in given.wanted else ())
    return Physical(kernel, (columns,), {"": fields, "late": fields}, ((orders[0].on,),))
