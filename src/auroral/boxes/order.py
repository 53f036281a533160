"""Order specifications: which attribute a box relies on, and how far off it may be."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StrictInt, StrictStr

from auroral.errors import NetworkError
from auroral.network.box import at_key
from auroral.network.declarations import Declaration
from auroral.network.types import Schema, Type

TUPLE_NUMBER = "tup#"


class Order(Declaration):
    """`on` an attribute, tolerating `slack` tuples of disorder, per group of `by` [1 §5.2.2].

    >>> Order("time", slack=1).document()
    {'on': 'time', 'slack': 1}
    """

    on: StrictStr
    slack: Annotated[StrictInt, Field(ge=0)] | None = None
    by: tuple[StrictStr, ...] = ()

    def __init__(self, on: str | None = None, **keys: Any):
        super().__init__(**({"on": on} if on is not None else {}), **keys)

    def type_in(self, schema: Schema, key: str = "order", *, tuple_number: bool = False) -> Type:
        """The type of `on`; checks that it can be ordered and that the group fields exist."""
        with at_key(f"{key}.by"):
            for name in self.by:
                schema.field(name)
        with at_key(f"{key}.on"):
            if self.on == TUPLE_NUMBER:
                if not tuple_number:
                    raise NetworkError("BAD_ORDER", "tup# orders only aggregates; expected a field")
                return Type("bigint")
            found = schema.field(self.on)
            if not found.type.is_orderable:
                raise NetworkError(
                    "BAD_ORDER",
                    f"cannot order on {found.name}: expected a number, date or timestamp,"
                    f" it is {found.type}",
                )
            return found.type

    def attributes(self, schema: Schema) -> frozenset[str]:
        names = self.by if self.on == TUPLE_NUMBER else (self.on, *self.by)
        return frozenset(schema.field(name).name for name in names)
