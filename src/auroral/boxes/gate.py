"""Gate: tuples below the marks of a stream leave it. It is made, never declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from auroral.boxes.order import Order
from auroral.network.box import LATE, OneInput, Scope
from auroral.network.types import Schema
from auroral.progress.lowwater import JointLowWater, Mark
from auroral.progress.propagation import ArcProgress, passed, relied_on


class Gate(OneInput):
    """Let tuples of a stream pass; those below one of its marks leave on `late` [3 §A.1.2].

    With a mark at 10, a tuple at 9 is late and one at 10 passes. NULL and NaN pass: they are not
    below any mark. A stream with `below: route` has a gate before everything that reads it.
    """

    kind: ClassVar[str] = "gate"
    executable: ClassVar[bool] = True
    stateful: ClassVar[bool] = True

    box: Literal["gate"] = "gate"
    orders: tuple[Order, ...]
    """The fields below whose marks tuples are late, each with the groups that have marks."""

    def ports(self, inputs: Sequence[Schema], _scope: Scope) -> dict[str, Schema]:
        return {"": inputs[0], LATE: inputs[0]}

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        return (frozenset(inputs[0].names),)

    def progress(self, inputs: Sequence[ArcProgress], _schemas: Sequence[Schema]) -> ArcProgress:
        return passed(inputs[0])

    def relies_on(self, inputs: Sequence[ArcProgress]) -> tuple[Mark | JointLowWater, ...]:
        """The marks of its one input: one for each field it judges by."""
        return tuple(relied_on(inputs[0], order.on, order.by) for order in self.orders)
