"""WaitFor on Spark: equal keys spread over buckets, the rest of the predicate in the kernel."""

from __future__ import annotations

from auroral.boxes.wait_for import SIDES, WaitFor
from auroral.boxes.window import timeout_us
from auroral.eddy.vectors.pairs import PairExpression
from auroral.kernels.wait_for import WaitForKernel
from auroral.network.types import Type
from auroral.spark.boxes.join import equalities, key_columns
from auroral.spark.plans.physical import Given, KernelColumns, Physical


def lower(box: WaitFor, given: Given) -> Physical:
    """A signal must meet every tuple that is held, so without equal keys there is one bucket."""
    held, signal = (KernelColumns(schema) for schema in given.schemas)
    fields = held.fields()
    pairs, rest = equalities(box.match, given.schemas, SIDES)
    keys = key_columns(pairs, (held, signal))
    matches = None if rest is None else _matches(box, held, signal)
    timeout = timeout_us(box.timeout)
    assert timeout is not None
    kernel = WaitForKernel(
        keys=keys,
        fields=fields,
        types=held.types(),
        timeout_us=timeout,
        matches=matches,
        late="late" in given.wanted,
    )
    ports = {"": fields, "late": fields}
    return Physical(kernel, (held, signal), ports, keys if keys[0] else None)


def _matches(box: WaitFor, held: KernelColumns, signal: KernelColumns) -> PairExpression:
    """The whole predicate as the kernel computes it for pairs."""
    columns = [
        tuple((side.field(field), f"{name}.{field}") for field in fields)
        for name, side, fields in zip(
            SIDES, (held, signal), box.named((held.schema, signal.schema)), strict=True
        )
    ]
    return PairExpression(box.match, Type("boolean"), columns[0], columns[1])
