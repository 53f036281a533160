"""Read: a SELECT per tuple."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import StrictStr

from auroral.network.box import OneInput, Scope, at_key, register
from auroral.network.types import Schema
from auroral.sql.queries.statements import parameters_of, select_schema


@register
class Read(OneInput):
    """Run a SELECT for each tuple, its fields as `:name`, and emit the rows [4 §4.1]."""

    kind: ClassVar[str] = "read"

    box: Literal["read"] = "read"
    sql: StrictStr

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        self.reads(inputs, scope)
        with at_key("sql"):
            return {"": select_schema(self.sql, scope.tables, inputs[0])}

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        with at_key("sql"):
            return (frozenset(inputs[0].field(name).name for name in parameters_of(self.sql)),)
