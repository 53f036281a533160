"""Aggregate: functions over windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from auroral.boxes.computed import computed_fields, computed_reads, require_some
from auroral.boxes.function import Computed
from auroral.boxes.order import TUPLE_NUMBER, Order
from auroral.boxes.predicate import predicate
from auroral.boxes.window import Window, is_predicate, require_length
from auroral.errors import NetworkError
from auroral.network.box import OneInput, Scope, register
from auroral.network.types import Field, Schema, Type


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
    compute: dict[str, Computed]

    def model_post_init(self, _context: Any) -> None:
        require_some(self.compute, "an aggregate")
        if self.window.align == "first" and self.order.slack is None:
            raise NetworkError(
                "BAD_WINDOW",
                "align: first starts windows at the least of slack + 1 tuples",
                where="key window.align",
                hint="add slack to order",
            )
        if self.window.size is None and self.window.advance is None:
            raise NetworkError(
                "BAD_WINDOW", "a window needs a size, or a predicate as advance", where="key window"
            )

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        (schema,) = inputs
        on = self.order.type_in(schema, tuple_number=True)
        self._check_window(schema, on, scope)
        start = "tup" if self.order.on == TUPLE_NUMBER else schema.field(self.order.on).name
        groups = [schema.field(name) for name in self.order.by]
        computed = computed_fields(self.compute, schema, scope)
        return {"": Schema((Field(start, on), *groups, *computed)), "late": schema}

    def _check_window(self, schema: Schema, on: Type, scope: Scope) -> None:
        size, advance = self.window.size, self.window.advance
        if size is not None:
            require_length("window.size", size, on)
        if advance is not None and is_predicate(advance):
            predicate(str(advance), schema, scope, "window.advance")
        elif size is None:
            raise NetworkError(
                "BAD_WINDOW",
                "a window needs a size unless advance is a predicate",
                where="key window",
            )
        elif advance is not None:
            require_length("window.advance", advance, on)

    def reads(self, inputs: Sequence[Schema], scope: Scope) -> tuple[frozenset[str], ...]:
        (schema,) = inputs
        names = self.order.attributes(schema) | computed_reads(self.compute, schema, scope)
        if self.window.advance is not None and is_predicate(self.window.advance):
            opens = predicate(str(self.window.advance), schema, scope, "window.advance")
            names |= frozenset(opens.fields)
        return (names,)
