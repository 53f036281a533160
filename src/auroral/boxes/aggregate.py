"""Aggregate: functions over windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import StrictStr

from auroral.boxes.computed import computed_fields, computed_reads
from auroral.boxes.function import Function
from auroral.boxes.order import TUPLE_NUMBER, Order
from auroral.boxes.predicate import predicate
from auroral.boxes.window import Window, is_predicate, require_length
from auroral.errors import NetworkError
from auroral.network.box import OneInput, Scope, register
from auroral.network.types import Field, Schema


@register
class Aggregate(OneInput):
    """Compute over windows of an ordered attribute, per group [1 §5.2.2.2, 3 §A.2.2].

    Emits the window's start, the group and the computed fields. Tuples too late for all of
    their windows leave on `box.late`.
    """

    kind: ClassVar[str] = "aggregate"

    box: Literal["aggregate"] = "aggregate"
    order: Order
    window: Window
    compute: dict[str, StrictStr | Function]

    def model_post_init(self, _context: Any) -> None:
        if not self.compute:
            raise NetworkError("BAD_PARAMETER", "an aggregate needs at least one computed field")
        if self.window.align == "first" and self.order.slack is None:
            raise NetworkError("BAD_WINDOW", "align: first needs order.slack")
        if self.window.timeout is not None and self.window.timeout <= 0:
            raise NetworkError("BAD_WINDOW", "timeout must be positive")

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        (schema,) = inputs
        on = self.order.type_in(schema, tuple_number=True)
        by_predicate = self.window.advance is not None and is_predicate(self.window.advance, on)
        if by_predicate:
            predicate(str(self.window.advance), schema, scope, "window.advance")
        elif self.window.size is None:
            raise NetworkError("BAD_WINDOW", "a window needs a size, or a predicate as advance")
        if self.window.size is not None:
            require_length("size", self.window.size, on)
        if self.window.advance is not None and not by_predicate:
            require_length("advance", self.window.advance, on)
        start = "tup" if self.order.on == TUPLE_NUMBER else schema.field(self.order.on).name
        groups = [schema.field(name) for name in self.order.by]
        computed = computed_fields(self.compute, schema, scope)
        return {"": Schema((Field(start, on), *groups, *computed)), "late": schema}

    def reads(self, inputs: Sequence[Schema], scope: Scope) -> tuple[frozenset[str], ...]:
        (schema,) = inputs
        return (self.order.attributes(schema) | computed_reads(self.compute, schema, scope),)
