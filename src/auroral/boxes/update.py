"""Update: an UPDATE, INSERT or DELETE per tuple."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import StrictStr

from auroral.boxes.map import Map
from auroral.boxes.order import Order
from auroral.boxes.predicate import expression
from auroral.boxes.sorted_input import ordering, sorted_ports, sorted_progress
from auroral.errors import NetworkError
from auroral.network.box import OneInput, Scope, at_key, register
from auroral.network.types import Field, Schema
from auroral.progress.propagation import ArcProgress
from auroral.sql.queries.statements import parameters_of, require_update


@register
class Update(OneInput):
    """Change a table for each tuple in order of arrival and emit the report [4 §4.1].

    (vid = 7, toll = 2.0) with `UPDATE accounts SET balance = balance - :toll WHERE vid = :vid` and
    report `{paid: toll}` gives (paid = 2.0). With `order` tuples are sorted before.
    """

    kind: ClassVar[str] = "update"
    executable: ClassVar[bool] = True
    uses_tables: ClassVar[bool] = True

    box: Literal["update"] = "update"
    sql: StrictStr
    report: dict[str, StrictStr]
    order: Order | None = None

    def model_post_init(self, _context: Any) -> None:
        if not self.report:
            raise NetworkError(
                "BAD_PARAMETER", "an update reports at least one field", where="key report"
            )

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        (schema,) = inputs
        self.reads(inputs, scope)
        with at_key("sql"):
            require_update(self.sql, scope.tables)
        fields = [
            Field(name, expression(text, schema, scope, f"report.{name}").type)
            for name, text in self.report.items()
        ]
        return {**sorted_ports(self.input, self.order, inputs, scope), "": Schema(tuple(fields))}

    def reads(self, inputs: Sequence[Schema], scope: Scope) -> tuple[frozenset[str], ...]:
        (schema,) = inputs
        with at_key("sql"):
            names = {schema.field(name).name for name in parameters_of(self.sql)}
        for key, text in self.report.items():
            names.update(expression(text, schema, scope, f"report.{key}").fields)
        return (frozenset(names) | ordering(self.order, schema),)

    def progress(self, inputs: Sequence[ArcProgress], schemas: Sequence[Schema]) -> ArcProgress:
        passed = sorted_progress(self.input, self.order, inputs, schemas)
        return self.reporting(self.input).progress([passed], schemas)

    def reporting(self, arc: str) -> Map:
        """The map that makes the report of the tuples of an arc."""
        return Map(input=arc, compute=dict(self.report))
