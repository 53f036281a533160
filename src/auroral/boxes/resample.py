"""Resample: align one stream to the tuples of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from auroral.boxes.computed import computed_fields, computed_reads, require_some
from auroral.boxes.join import require_comparable
from auroral.boxes.order import Order
from auroral.boxes.sides import left_field, left_reads, without_right
from auroral.boxes.window import Length, Seconds, in_marks, require_length, require_timeout
from auroral.network.box import ManyInputs, Scope, at_key, register, require_inputs
from auroral.network.function import Computed
from auroral.network.types import Field, Schema
from auroral.progress.lowwater import JointLowWater, Mark
from auroral.progress.propagation import ArcProgress, relied_on, resampled


@register
class Resample(ManyInputs):
    """For each left tuple and right group, compute over the right tuples nearby [1 §5.2.2.4].

    Emits the right's group fields, the left's `on` and the computed fields; nothing for an
    empty window. Functions are over fields of the right, `x` or `right.x`, and `left.x`, which is
    the same for all tuples of a window. With `timeout: t` a left tuple waits for t seconds at most,
    and a right tuple is kept for t seconds at most for left ones to come.
    """

    kind: ClassVar[str] = "resample"
    executable: ClassVar[bool] = True
    stateful: ClassVar[bool] = True

    box: Literal["resample"] = "resample"
    left: Order
    right: Order
    within: Length
    compute: dict[str, Computed]
    timeout: Seconds | None = None

    def model_post_init(self, _context: Any) -> None:
        require_inputs(self, 2)
        require_timeout(self.timeout)
        require_some(self.compute, "a resample")

    def state_shape(self) -> dict[str, Any]:
        return {**super().state_shape(), "timeout": self.times_out}

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        left, right = inputs
        on = self.left.type_in(left, "left", tuple_number=True)
        require_comparable(on, self.right.type_in(right, "right", tuple_number=True))
        require_length("within", self.within, on, zero=True)
        groups = [right.field(name) for name in self.right.by]
        at = Field("tup", on) if self.left.numbered else left.field(self.left.on)
        computed = computed_fields(
            without_right(self.compute, right), right, scope, left_field(left, right)
        )
        for name, how in self.compute.items():
            with at_key(f"compute.{name}"):
                left_reads({name: how}, left, right)
        ports = {"": Schema((*groups, at, *computed))}
        ports |= {} if self.left.numbered else {"left_late": left}
        return ports | ({} if self.right.numbered else {"right_late": right})

    def reads(self, inputs: Sequence[Schema], scope: Scope) -> tuple[frozenset[str], ...]:
        left, right = inputs
        compute = without_right(self.compute, right)
        computed = computed_reads(compute, right, scope, left_field(left, right))
        constant = frozenset(left_reads(compute, left, right))
        return (self.left.attributes(left) | constant, self.right.attributes(right) | computed)

    @property
    def times_out(self) -> bool:
        return self.timeout is not None

    def progress(self, inputs: Sequence[ArcProgress], schemas: Sequence[Schema]) -> ArcProgress:
        if self.left.attribute is None or self.right.attribute is None:
            return {}
        left, right = schemas[0].field(self.left.on), schemas[1].field(self.right.on)
        within = in_marks(self.within, left.type)
        return resampled(inputs[0], inputs[1], (left.name, right.name), within)

    def relies_on(self, inputs: Sequence[ArcProgress]) -> tuple[Mark | JointLowWater, ...]:
        orders = zip(inputs, (self.left, self.right), strict=True)
        return tuple(relied_on(progress, o.attribute, o.by) for progress, o in orders)
