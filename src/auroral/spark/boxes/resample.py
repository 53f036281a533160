"""Resample on Spark: one bucket, since every left tuple meets every right group."""

from __future__ import annotations

from dataclasses import dataclass, field

from auroral.boxes.resample import Resample
from auroral.boxes.sides import LEFT, left_field, left_names, left_reads, without_right
from auroral.boxes.window import in_marks, timeout_us
from auroral.eddy.vectors.pairs import PairExpression
from auroral.kernels.resample import ResampleKernel
from auroral.network.types import Field, Schema, Type
from auroral.spark.boxes.aggregate import AggregateCalls
from auroral.spark.plans.physical import (
    Given,
    KernelColumns,
    Physical,
    mark_fields,
    ordered_column,
    quoted,
)
from auroral.sql.expressions.expression import analyze


def lower(box: Resample, given: Given) -> Physical:
    """The kernel finds the right tuples near each left one; arithmetic is done after it."""
    left, right = (KernelColumns(schema) for schema in given.schemas)
    on = box.left.type_in(left.schema, tuple_number=True)
    compute = without_right(box.compute, right.schema)
    pairs = LeftAndRight(left, right, left_field(left.schema, right.schema))
    calls = AggregateCalls.of(compute, right, given, pairs)
    constants = left.fields(left_reads(compute, left.schema, right.schema)) if calls.outer else ()
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
        constants=constants,
        paired=tuple(pairs.expressions),
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
    copies = tuple(f"l_{name}" for name in constants)
    made = (*by, "on", *copies, *(f"agg{n}" for n in range(len(calls.specs))))
    ports = {"": made, "left_late": late[0], "right_late": late[1]}
    if not calls.outer:
        return Physical(kernel, (left, right), ports)
    kinds = [left.texts[name][1] for name in constants]
    types = [*(right.texts[name][1] for name in by), on, *kinds, *calls.types]
    texts = [*map(quoted, by), "`on`", *calls.texts]
    return Physical(
        kernel,
        (left, right),
        ports,
        compute=dict(zip(given.output.names, texts, strict=True)),
        returns=tuple(zip(made, types, strict=True)),
        structs={LEFT: list(zip(copies, pairs.names(constants), strict=True))} if copies else {},
    )


@dataclass
class LeftAndRight:
    """Arguments over the columns of the right, or over both sides: those are computed per pair."""

    left: KernelColumns
    right: KernelColumns
    constant: Field | None
    expressions: list[PairExpression] = field(default_factory=list)

    def computed(self, text: str, type: Type) -> str:
        """The column of an argument."""
        named = [] if self.constant is None else left_names(text, self.left.schema)
        if not named or self.constant is None:
            return self.right.computed(text, type)
        schema = Schema((*self.right.schema.fields, self.constant))
        fields = [name for name in analyze(text, schema).fields if name != self.constant.name]
        self.expressions.append(
            PairExpression(
                text,
                type,
                tuple((self.left.field(name), f"{LEFT}.{name}") for name in named),
                tuple((self.right.field(name), name) for name in fields),
            )
        )
        return f"p{len(self.expressions) - 1}"

    def names(self, columns: tuple[str, ...]) -> list[str]:
        """The fields of columns of the left."""
        return [self.left.schema.names[int(column[1:])] for column in columns]
