"""Dedup: the first of tuples that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import StrictStr

from auroral.boxes.order import Order, require_groups
from auroral.errors import NetworkError
from auroral.network.box import OneInput, Scope, at_key, register
from auroral.network.types import Schema
from auroral.progress.lowwater import JointLowWater, Mark
from auroral.progress.propagation import ArcProgress, passed, relied_on


@register
class Dedup(OneInput):
    """Pass a tuple unless one with the same `keys` is remembered (Dupelim) [3 §5.4].

    What has passed is remembered until progress passes its `on`; tuples below progress are late.
    With keys [id] and punctuation at 10, a second tuple of an id first seen at 12 is dropped.
    """

    kind: ClassVar[str] = "dedup"
    executable: ClassVar[bool] = True
    stateful: ClassVar[bool] = True

    box: Literal["dedup"] = "dedup"
    keys: tuple[StrictStr, ...]
    order: Order

    def model_post_init(self, _context: Any) -> None:
        if not self.keys:
            raise NetworkError(
                "BAD_PARAMETER", "dedup needs at least one field to compare", where="key keys"
            )

    def ports(self, inputs: Sequence[Schema], _scope: Scope) -> dict[str, Schema]:
        (schema,) = inputs
        self.order.type_in(schema)
        with at_key("keys"):
            require_groups(schema, self.keys)
        return {"": schema, "late": schema}

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        return (frozenset(inputs[0].names),)

    def progress(self, inputs: Sequence[ArcProgress], _schemas: Sequence[Schema]) -> ArcProgress:
        return passed(inputs[0])

    def relies_on(self, inputs: Sequence[ArcProgress]) -> tuple[Mark | JointLowWater, ...]:
        return (relied_on(inputs[0], self.order.attribute, self.order.by),)
