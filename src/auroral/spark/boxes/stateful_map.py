"""Map with state on Spark: a kernel that calls a Python class, groups spread over buckets."""

from __future__ import annotations

from auroral.boxes.stateful_map import StatefulMap
from auroral.kernels.stateful_map import StatefulMapKernel, made_column
from auroral.spark.plans.physical import Given, KernelColumns, Physical


def lower(box: StatefulMap, given: Given) -> Physical:
    """All fields travel: the class gets whole rows."""
    columns = KernelColumns(given.schemas[0])
    fields, by = columns.fields(), columns.fields(box.by)
    kept = columns.fields(box.kept(columns.schema))
    returned = given.output.fields[len(kept) :]
    kernel = StatefulMapKernel(
        function=box.udf,
        by=by,
        fields=fields,
        names=columns.schema.names,
        kept=kept,
        returns=tuple((field.name, field.type.arrow()) for field in returned),
        types=columns.types(),
        directory=str(given.directory) if given.directory else None,
    )
    made = tuple(made_column(field.name) for field in returned)
    return Physical(kernel, (columns,), {"": (*kept, *made)}, (by,) if by else None)
