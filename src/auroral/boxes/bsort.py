"""BSort: a lossless buffer sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from auroral.boxes.order import Order
from auroral.network.box import OneInput, Scope, register
from auroral.network.types import Schema
from auroral.progress.lowwater import JointLowWater, Mark
from auroral.progress.propagation import ArcProgress, only, passed, relied_on


@register
class BSort(OneInput):
    """Keep slack + 1 tuples per group; when full the least leaves [1 §5.2.2.1].

    With slack 2, 1 3 1 2 4 4 8 3 comes out as 1 1 2 3 4 3 … [1 Fig. 8]. NULL sorts first. Without
    slack it keeps what punctuation has not passed yet, and what is below it is late [3 §5.5].
    On `tup#` tuples leave in order of arrival.
    """

    kind: ClassVar[str] = "bsort"
    executable: ClassVar[bool] = True
    stateful: ClassVar[bool] = True

    box: Literal["bsort"] = "bsort"
    order: Order

    @property
    def passes_revisions(self) -> bool:
        return True

    def ports(self, inputs: Sequence[Schema], _scope: Scope) -> dict[str, Schema]:
        self.order.type_in(inputs[0], tuple_number=True)
        return {"": inputs[0]} | ({} if self.order.attribute is None else {"late": inputs[0]})

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        return (frozenset(inputs[0].names),)

    def progress(self, inputs: Sequence[ArcProgress], schemas: Sequence[Schema]) -> ArcProgress:
        if self.order.slack is not None:
            return {}
        if self.order.numbered:
            return passed(inputs[0])
        return only(inputs[0], schemas[0].field(self.order.on).name, self.order.by)

    def relies_on(self, inputs: Sequence[ArcProgress]) -> tuple[Mark | JointLowWater, ...]:
        return (relied_on(inputs[0], self.order.attribute, self.order.by),)
