"""BSort: a lossless buffer sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from auroral.boxes.order import Order
from auroral.errors import NetworkError
from auroral.network.box import OneInput, Scope, register
from auroral.network.types import Schema


@register
class BSort(OneInput):
    """Keep slack + 1 tuples per group; when full the least leaves [1 §5.2.2.1].

    With slack 2, 1 3 1 2 4 4 8 3 comes out as 1 1 2 3 4 3 … [1 Fig. 8].
    """

    kind: ClassVar[str] = "bsort"

    box: Literal["bsort"] = "bsort"
    order: Order

    def model_post_init(self, _context: Any) -> None:
        if self.order.slack is None:
            raise NetworkError(
                "BAD_ORDER",
                "bsort keeps a buffer of slack + 1 tuples, but order has no slack",
                where="key order",
                hint="add slack to order",
            )

    def ports(self, inputs: Sequence[Schema], _scope: Scope) -> dict[str, Schema]:
        self.order.type_in(inputs[0])
        return {"": inputs[0]}

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        return (frozenset(inputs[0].names),)
