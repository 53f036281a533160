"""Read: a SELECT per tuple."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import StrictStr

from auroral.boxes.order import Order
from auroral.boxes.sorted_input import ordering, sorted_ports, sorted_progress
from auroral.network.box import OneInput, Scope, at_key, register
from auroral.network.types import Schema
from auroral.progress.monotone import FieldTerm, derived
from auroral.progress.propagation import ArcProgress
from auroral.sql.queries.statements import parameters_of, select_schema


@register
class Read(OneInput):
    """Run a SELECT for each tuple, its fields as `:name`, and emit the rows [4 §4.1].

    `keep` names fields of the tuple that stand before the columns of each row. (vid = 7) with
    keep `[vid]` and `SELECT balance FROM accounts WHERE vid = :vid` gives (vid = 7, balance = 3.5)
    if there is such a row, and nothing if there is none. With `order` tuples are sorted before.
    """

    kind: ClassVar[str] = "read"
    executable: ClassVar[bool] = True
    uses_tables: ClassVar[bool] = True

    box: Literal["read"] = "read"
    sql: StrictStr
    keep: tuple[StrictStr, ...] = ()
    order: Order | None = None

    def columns(self, inputs: Sequence[Schema], scope: Scope) -> Schema:
        """The columns of the rows that its statement gives."""
        with at_key("sql"):
            return select_schema(self.sql, scope.tables, inputs[0])

    def kept(self, schema: Schema) -> tuple[str, ...]:
        """The fields of the tuple that it emits."""
        with at_key("keep"):
            return tuple(schema.field(name).name for name in self.keep)

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        self.reads(inputs, scope)
        kept = [inputs[0].field(name) for name in self.kept(inputs[0])]
        made = Schema((*kept, *self.columns(inputs, scope)))
        return {**sorted_ports(self.input, self.order, inputs, scope), "": made}

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        with at_key("sql"):
            names = {inputs[0].field(name).name for name in parameters_of(self.sql)}
        return (frozenset(names | {*self.kept(inputs[0])} | ordering(self.order, inputs[0])),)

    def progress(self, inputs: Sequence[ArcProgress], schemas: Sequence[Schema]) -> ArcProgress:
        kept = {name: FieldTerm(name) for name in self.kept(schemas[0])}
        return derived(sorted_progress(self.input, self.order, inputs, schemas), kept)
