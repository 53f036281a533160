"""Resample on Spark: one bucket, since every left tuple meets every right group."""

from __future__ import annotations

from auroral.boxes.resample import Resample
from auroral.boxes.window import in_marks, timeout_us
from auroral.kernels.resample import ResampleKernel
from auroral.spark.boxes.aggregate import Calls
from auroral.spark.physical import (
    Columns,
    Given,
    Physical,
    mark_fields,
    ordered_column,
    quoted,
)


def lower(box: Resample, given: Given) -> Physical:
    """The kernel finds the right tuples near each left one; arithmetic is done after it."""
    left, right = (Columns(schema) for schema in given.schemas)
    on = box.left.type_in(left.schema, tuple_number=True)
    calls = Calls.of(box.compute, right, given)
    by = right.fields(box.right.by)
    late = [
        side.fields() if f"{name}_late" in given.wanted else ()
        for side, name in ((left, "left"), (right, "right"))
    ]
    kernel = ResampleKernel(
        on=(ordered_column(left, box.left), ordered_column(right, box.right)),
        by=(left.fields(box.left.by), by),
        slack=(box.left.slack, box.right.slack),
        within=in_marks(box.within, on),
        timeout_us=timeout_us(box.timeout),
        calls=tuple(calls.specs),
        arguments=tuple(calls.arguments),
        fields=(late[0], late[1]),
        late=(bool(late[0]), bool(late[1])),
        on_type=on.arrow(),
        by_mark=(
            left.fields(mark_fields(given.marks[0])),
            right.fields(mark_fields(given.marks[1])),
        ),
        types=(left.types(), right.types()),
    )
    made = (*by, "on", *(f"agg{n}" for n in range(len(calls.specs))))
    ports = {"": made, "left_late": late[0], "right_late": late[1]}
    if not calls.outer:
        return Physical(kernel, (left, right), ports)
    types = [*(right.texts[name][1] for name in by), on, *calls.types]
    texts = [*map(quoted, by), "`on`", *calls.texts]
    return Physical(
        kernel,
        (left, right),
        ports,
        compute=dict(zip(given.output.names, texts, strict=True)),
        returns=tuple(zip(made, types, strict=True)),
    )
