"""BSort on Spark: a kernel that holds slack tuples per group, or what punctuation holds back."""

from __future__ import annotations

from auroral.boxes.bsort import BSort
from auroral.kernels.bsort import BSortKernel
from auroral.spark.plans.physical import Given, KernelColumns, Physical, mark_fields


def lower(box: BSort, given: Given) -> Physical:
    """Groups are spread over buckets; every field travels with its tuple."""
    columns = KernelColumns(given.schemas[0])
    fields, by = columns.fields(), columns.fields(box.order.by)
    kernel = BSortKernel(
        on=None if box.order.numbered else columns.field(box.order.on),
        by=by,
        slack=box.order.slack,
        fields=fields,
        types=columns.types(),
        late_fields=fields if "late" in given.wanted else (),
        by_mark=columns.fields(mark_fields(given.marks[0])),
    )
    return Physical(kernel, (columns,), {"": fields, "late": fields}, (by,) if by else None)
