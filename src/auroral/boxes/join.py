"""Join: pairs of tuples within a band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import StrictStr

from auroral.boxes.order import Order
from auroral.boxes.predicate import predicate, sided
from auroral.boxes.window import Length, require_length
from auroral.errors import NetworkError
from auroral.network.box import ManyInputs, Scope, register, require_inputs
from auroral.network.types import Field, Schema, Type


@register
class Join(ManyInputs):
    """Pair left and right tuples that satisfy `on` and lie within a band [1 §5.2.2.3, 3 §5.3].

    `within: s` means abs(left.on − right.on) <= s; `range: [r0, r1]` means
    left.on − r0 <= right.on <= left.on + r1. A table side has no window.
    """

    kind: ClassVar[str] = "join"

    box: Literal["join"] = "join"
    on: StrictStr | None = None
    left: Order | None = None
    right: Order | None = None
    within: Length | None = None
    range: tuple[Length, Length] | None = None

    def model_post_init(self, _context: Any) -> None:
        require_inputs(self, 2)
        if self.within is not None and self.range is not None:
            raise NetworkError("BAD_PARAMETER", "a join takes within or range, not both")

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        left, right = inputs
        if self.on is not None:
            predicate(self.on, sided(left=left, right=right), scope, "on")
        tables = [name in scope.tables for name in self.inputs]
        if all(tables):
            raise NetworkError("BAD_PARAMETER", "a join needs at least one stream")
        if not any(tables):
            self._require_band(left, right)
        elif self.within is not None or self.range is not None:
            raise NetworkError("BAD_PARAMETER", "a join with a table has no window")
        ports = {"": joined(left, right)}
        ports |= {} if tables[0] else {"left_late": left}
        return ports | ({} if tables[1] else {"right_late": right})

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(schema.names) for schema in inputs)

    def _require_band(self, left: Schema, right: Schema) -> None:
        if self.left is None or self.right is None:
            raise NetworkError("MISSING_KEY", "a join of two streams needs left and right order")
        left_on, right_on = self.left.type_in(left), self.right.type_in(right)
        if _family(left_on) != _family(right_on):
            raise NetworkError(
                "TYPE_MISMATCH",
                f"left.on and right.on must be comparable: {left_on} and {right_on}",
            )
        lengths = [self.within] if self.within is not None else list(self.range or ())
        if not lengths:
            raise NetworkError("MISSING_KEY", "a join of two streams needs within or range")
        for length in lengths:
            if length != 0:
                require_length("the band", length, left_on)


def joined(left: Schema, right: Schema) -> Schema:
    """Left fields, then right fields; a right name already taken becomes `right_<name>`."""
    fields = list(left.fields)
    taken = {field.name.lower() for field in left}
    for field in right:
        name = f"right_{field.name}" if field.name.lower() in taken else field.name
        taken.add(name.lower())
        fields.append(Field(name, field.type))
    return Schema(tuple(fields))


def _family(of: Type) -> str:
    return "number" if of.is_numeric else of.name
