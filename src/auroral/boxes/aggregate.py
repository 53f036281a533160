"""Aggregate: functions over windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from auroral.boxes.computed import computed_fields, computed_reads, require_some
from auroral.boxes.order import TUPLE_NUMBER, Order
from auroral.boxes.predicate import predicate
from auroral.boxes.window import Length, Window, in_marks, is_predicate, require_length
from auroral.errors import NetworkError
from auroral.network.box import OneInput, Scope, register
from auroral.network.function import Computed
from auroral.network.types import Field, Schema, Type
from auroral.progress.lowwater import JointLowWater, Mark
from auroral.progress.propagation import ArcProgress, relied_on, windowed


@register
class Aggregate(OneInput):
    """Compute over windows of an ordered attribute, per group [1 §5.2.2.2, 3 §A.2.2].

    Emits the window's start, the group and the computed fields. Tuples too late for all of
    their windows leave on `box.late`; with `late: revise` those no further than `history` below
    progress make a closed window come out again, its field `_revises` true [4 §5.1].
    """

    kind: ClassVar[str] = "aggregate"
    executable: ClassVar[bool] = True
    stateful: ClassVar[bool] = True

    box: Literal["aggregate"] = "aggregate"
    order: Order
    window: Window
    compute: dict[str, Computed]
    late: Literal["revise"] | None = None
    history: Length | None = None

    def model_post_init(self, _context: Any) -> None:
        require_some(self.compute, "an aggregate")
        if self.window.align == "first" and self.order.slack is None:
            raise NetworkError(
                "BAD_WINDOW",
                "align: first starts windows at the least of slack + 1 tuples",
                where="key window.align",
                hint="add slack to order",
            )
        if (self.late is None) != (self.history is None):
            raise NetworkError(
                "BAD_PARAMETER",
                "late: revise and history (how far back windows are revised) go together",
                where="key history" if self.late is None else "key late",
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
        revises = [Field("_revises", Type("boolean"))] if self.late else []
        emitted = Schema((Field(start, on), *groups, *computed, *revises))
        return {"": emitted, "late": schema}

    def _check_window(self, schema: Schema, on: Type, scope: Scope) -> None:
        size, advance = self.window.size, self.window.advance
        if self.history is not None:
            if self.order.on == TUPLE_NUMBER or (advance is not None and is_predicate(advance)):
                raise NetworkError(
                    "BAD_WINDOW",
                    "only windows over values can be revised: tuples are late for no other",
                    where="key late",
                )
            require_length("history", self.history, on)
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

    def state_shape(self) -> dict[str, Any]:
        shape = super().state_shape()
        return {**shape, "window": {**shape["window"], "timeout": self.times_out}}

    @property
    def times_out(self) -> bool:
        return self.window.timeout is not None

    @property
    def revises(self) -> bool:
        return self.late is not None

    @property
    def opens(self) -> str | None:
        """The predicate that opens windows, if they open by one."""
        advance = self.window.advance
        return str(advance) if advance is not None and is_predicate(advance) else None

    def lengths(self, on: Type) -> tuple[Any, Any, Any]:
        """Size, advance and history in the units of marks; None where there is none."""
        size = None if self.window.size is None else in_marks(self.window.size, on)
        history = None if self.history is None else in_marks(self.history, on)
        if self.opens is not None:
            return size, None, history
        advance = self.window.advance
        return size, size if advance is None else in_marks(advance, on), history

    def progress(self, inputs: Sequence[ArcProgress], schemas: Sequence[Schema]) -> ArcProgress:
        if self.order.slack is not None or self.order.on == TUPLE_NUMBER or self.opens is not None:
            return {}
        on = schemas[0].field(self.order.on)
        size, advance, history = self.lengths(on.type)
        return windowed(inputs[0], on.name, self.order.by, size, advance, history or 0)

    def relies_on(self, inputs: Sequence[ArcProgress]) -> tuple[Mark | JointLowWater, ...]:
        return (relied_on(inputs[0], self.order.attribute, self.order.by),)
