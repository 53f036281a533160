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
    takes_tables: ClassVar[bool] = True

    box: Literal["join"] = "join"
    on: StrictStr | None = None
    left: Order | None = None
    right: Order | None = None
    within: Length | None = None
    range: tuple[Length, Length] | None = None

    def model_post_init(self, _context: Any) -> None:
        require_inputs(self, 2)
        if self.within is not None and self.range is not None:
            raise NetworkError(
                "BAD_PARAMETER", "a join takes within or range, not both", where="key range"
            )

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        left, right = inputs
        if self.on is not None:
            predicate(self.on, sided(left=left, right=right), scope, "on")
        tables = [name in scope.tables for name in self.inputs]
        if all(tables):
            raise NetworkError(
                "BAD_PARAMETER",
                "a join needs at least one stream, found two tables",
                where="key inputs",
            )
        types = [
            order.type_in(schema, key) if order else None
            for order, schema, key in ((self.left, left, "left"), (self.right, right, "right"))
        ]
        if not any(tables):
            self._require_band(*types)
        elif self.within is not None or self.range is not None:
            raise NetworkError(
                "BAD_PARAMETER",
                f"a join with a table ({self.inputs[tables.index(True)]}) has no window",
                where="key within" if self.within is not None else "key range",
            )
        ports = {"": joined(left, right)}
        ports |= {} if tables[0] else {"left_late": left}
        return ports | ({} if tables[1] else {"right_late": right})

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(schema.names) for schema in inputs)

    def _require_band(self, left: Type | None, right: Type | None) -> None:
        if left is None or right is None:
            missing = "left" if left is None else "right"
            raise NetworkError(
                "MISSING_KEY", f"a join of two streams needs the order of its {missing}"
            )
        require_comparable(left, right)
        if self.within is not None:
            require_length("within", self.within, left, zero=True)
        elif self.range is None:
            raise NetworkError("MISSING_KEY", "a join of two streams needs within or range")
        for at, length in enumerate(self.range or ()):
            require_length(f"range.{at}", length, left, zero=True)


def require_comparable(left: Type, right: Type) -> None:
    """Refuse a band between attributes whose difference means nothing."""
    if _family(left) != _family(right):
        raise NetworkError(
            "TYPE_MISMATCH",
            f"left.on and right.on must be comparable: {left} and {right}",
            where="key right.on",
        )


def joined(left: Schema, right: Schema) -> Schema:
    """Left fields, then right fields; a right name already taken becomes `right_<name>`."""
    fields = list(left.fields)
    taken = {field.name.lower() for field in left}
    for field in right:
        name = field.name
        while name.lower() in taken:
            name = f"right_{name}"
        taken.add(name.lower())
        fields.append(Field(name, field.type))
    return Schema(tuple(fields))


def _family(of: Type) -> str:
    return "number" if of.is_numeric else of.name
