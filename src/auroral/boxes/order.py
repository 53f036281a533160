"""Order specifications: which attribute a box relies on, and how far off it may be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field, StrictInt, StrictStr

from auroral.errors import NetworkError
from auroral.network.box import at_key
from auroral.network.declarations import Declaration
from auroral.network.types import Schema, Type
from auroral.progress.durations import LONGEST

TUPLE_NUMBER = "tup#"
_NO_GROUPS = ("array", "map", "struct")


def require_groups(schema: Schema, names: Iterable[str]) -> None:
    """Check that fields exist and have values that can be told apart and sorted."""
    for name in names:
        found = schema.field(name)
        if found.type.name in _NO_GROUPS:
            raise NetworkError(
                "BAD_ORDER",
                f"cannot group by {found.name}: expected a simple type, it is {found.type}",
            )


class Order(Declaration):
    """`on` an attribute, tolerating `slack` tuples of disorder, per group of `by` [1 §5.2.2].

    >>> Order("time", slack=1).document()
    {'on': 'time', 'slack': 1}
    """

    on: StrictStr
    slack: Annotated[StrictInt, Field(ge=0, le=LONGEST)] | None = None
    by: tuple[StrictStr, ...] = ()

    def __init__(self, on: str | None = None, **keys: Any):
        super().__init__(**({"on": on} if on is not None else {}), **keys)

    @property
    def numbered(self) -> bool:
        """Whether it orders by arrival numbers, 1, 2, 3 … per group."""
        return self.on == TUPLE_NUMBER

    def type_in(self, schema: Schema, key: str = "order", *, tuple_number: bool = False) -> Type:
        """The type of `on`; checks that it can be ordered and that the group fields exist."""
        with at_key(f"{key}.by"):
            require_groups(schema, self.by)
        with at_key(f"{key}.on"):
            if self.on == TUPLE_NUMBER:
                if not tuple_number:
                    raise NetworkError("BAD_ORDER", "expected a field: this box does not take tup#")
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

    @property
    def attribute(self) -> str | None:
        """The field whose promises it relies on; None if it infers progress itself."""
        return None if self.on == TUPLE_NUMBER or self.slack is not None else self.on
