"""Resample: align one stream to the tuples of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from auroral.boxes.computed import computed_fields, computed_reads, require_some
from auroral.boxes.join import require_comparable
from auroral.boxes.order import Order
from auroral.boxes.window import Length, in_marks, require_length
from auroral.network.box import ManyInputs, Scope, register, require_inputs
from auroral.network.function import Computed
from auroral.network.types import Schema
from auroral.progress.lowwater import JointLowWater, Mark
from auroral.progress.propagation import ArcProgress, relied_on, resampled


@register
class Resample(ManyInputs):
    """For each left tuple and right group, compute over the right tuples nearby [1 §5.2.2.4].

    Emits the right's group fields, the left's `on` and the computed fields; nothing for an
    empty window.
    """

    kind: ClassVar[str] = "resample"
    executable: ClassVar[bool] = True
    stateful: ClassVar[bool] = True

    box: Literal["resample"] = "resample"
    left: Order
    right: Order
    within: Length
    compute: dict[str, Computed]

    def model_post_init(self, _context: Any) -> None:
        require_inputs(self, 2)
        require_some(self.compute, "a resample")

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        left, right = inputs
        on = self.left.type_in(left, "left")
        require_comparable(on, self.right.type_in(right, "right"))
        require_length("within", self.within, on, zero=True)
        groups = [right.field(name) for name in self.right.by]
        computed = computed_fields(self.compute, right, scope)
        emitted = Schema((*groups, left.field(self.left.on), *computed))
        return {"": emitted, "left_late": left, "right_late": right}

    def reads(self, inputs: Sequence[Schema], scope: Scope) -> tuple[frozenset[str], ...]:
        left, right = inputs
        computed = computed_reads(self.compute, right, scope)
        return (self.left.attributes(left), self.right.attributes(right) | computed)

    def progress(self, inputs: Sequence[ArcProgress], schemas: Sequence[Schema]) -> ArcProgress:
        if self.left.slack is not None or self.right.slack is not None:
            return {}
        left, right = schemas[0].field(self.left.on), schemas[1].field(self.right.on)
        within = in_marks(self.within, left.type)
        return resampled(inputs[0], inputs[1], (left.name, right.name), within)

    def relies_on(self, inputs: Sequence[ArcProgress]) -> tuple[Mark | JointLowWater, ...]:
        orders = zip(inputs, (self.left, self.right), strict=True)
        return tuple(relied_on(progress, o.attribute, o.by) for progress, o in orders)
