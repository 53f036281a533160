"""Latch: running aggregates by key, kept in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import StrictStr

from auroral.boxes.computed import computed_fields, computed_reads, require_some
from auroral.boxes.order import require_groups
from auroral.errors import NetworkError, closest, list_existing
from auroral.network.box import OneInput, Scope, at_key, register
from auroral.network.types import Schema
from auroral.progress.lowwater import JointLowWater, LowWater, Mark
from auroral.progress.propagation import ArcProgress, renamed


@register
class Latch(OneInput):
    """Aggregate everything that has come, by key, and keep it in a table [4 §4.1].

    Each tuple changes the row of its key: the box emits the `by` fields and the computed fields
    with their new values. With `by: [car]` and `paid: sum(toll)`, the tolls (1, 2.0), (2, 5.0) and
    (1, 1.5) make (1, 2.0), (2, 5.0) and (1, 3.5).
    """

    kind: ClassVar[str] = "latch"
    executable: ClassVar[bool] = True
    stateful: ClassVar[bool] = True

    box: Literal["latch"] = "latch"
    by: tuple[StrictStr, ...]
    compute: dict[str, StrictStr]
    table: StrictStr

    def model_post_init(self, _context: Any) -> None:
        require_some(self.compute, "a latch")
        if not self.by:
            raise NetworkError(
                "BAD_PARAMETER", "a latch needs at least one field as key", where="key by"
            )

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        (schema,) = inputs
        with at_key("by"):
            require_groups(schema, self.by)
        keys = [schema.field(name) for name in self.by]
        made = Schema((*keys, *computed_fields(self.compute, schema, scope)))
        with at_key("table"):
            self._require_table(made, scope)
        return {"": made}

    def reads(self, inputs: Sequence[Schema], scope: Scope) -> tuple[frozenset[str], ...]:
        (schema,) = inputs
        keys = frozenset(schema.field(name).name for name in self.by)
        return (keys | computed_reads(self.compute, schema, scope),)

    def progress(self, inputs: Sequence[ArcProgress], schemas: Sequence[Schema]) -> ArcProgress:
        keys = [schemas[0].field(name).name for name in self.by]
        return renamed(inputs[0], {name: [name] for name in keys})

    def relies_on(self, _inputs: Sequence[ArcProgress]) -> tuple[Mark | JointLowWater, ...]:
        return (LowWater(),)

    def _require_table(self, made: Schema, scope: Scope) -> None:
        """Refuse a table that cannot hold what the latch emits."""
        if self.table not in scope.tables:
            raise NetworkError(
                "UNKNOWN_TABLE",
                f"there is no table {self.table}; {list_existing(scope.tables)}",
                hint=closest(self.table, scope.tables),
            )
        key = scope.table_keys.get(self.table, ())
        if sorted(map(str.lower, key)) != sorted(map(str.lower, self.by)):
            raise NetworkError(
                "SCHEMA_MISMATCH",
                f"the key of the table {self.table} must be the fields of by: expected"
                f" [{', '.join(self.by)}], found [{', '.join(key)}]",
                hint=f"declare key: [{', '.join(self.by)}] for {self.table}",
            )
        table = scope.tables[self.table]
        for field in made:
            if field.name not in table:
                raise NetworkError(
                    "SCHEMA_MISMATCH",
                    f"the table {self.table} has no field {field.name};"
                    f" {list_existing(table.names)}",
                    hint=f"declare {field.name}: {field.type} for {self.table}",
                )
            found = table.field(field.name).type
            if found != field.type:
                raise NetworkError(
                    "SCHEMA_MISMATCH",
                    f"{field.name} is {field.type}, but {found} in the table {self.table}",
                    hint=f"declare {field.name}: {field.type} for {self.table}",
                )
