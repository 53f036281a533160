"""Dedup on Spark: a kernel that remembers keys until progress passes them."""

from __future__ import annotations

from auroral.boxes.dedup import Dedup
from auroral.kernels.dedup import DedupKernel
from auroral.spark.plans.physical import Given, KernelColumns, Physical, mark_fields


def lower(box: Dedup, given: Given) -> Physical:
    """Keys are spread over buckets; with slack whole groups must stay together."""
    columns = KernelColumns(given.schemas[0])
    fields, by, keys = columns.fields(), columns.fields(box.order.by), columns.fields(box.keys)
    kernel = DedupKernel(
        on=columns.field(box.order.on),
        by=by,
        slack=box.order.slack,
        keys=keys,
        fields=fields,
        types=columns.types(),
        late_fields=fields if "late" in given.wanted else (),
        by_mark=columns.fields(mark_fields(given.marks[0])),
    )
    # Slack counts the tuples of a group, so a group that is no part of the key is not spread.
    whole = box.order.slack is None or set(by) <= set(keys)
    spread = keys if box.order.slack is None else by
    return Physical(
        kernel,
        (columns,),
        {"": fields, "late": fields},
        (spread,) if whole and spread else None,
    )
