"""TableWrite: a statement that changes a table per tuple. It is made, never declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import StrictStr

from auroral.network.box import OneInput, Scope
from auroral.network.types import Schema
from auroral.progress.propagation import ArcProgress, passed
from auroral.sql.queries.statements import parameters_of, require_update


class TableWrite(OneInput):
    """Change a table for each tuple and pass the tuple on.

    An update is one, followed by a map that makes its report: a tuple that fails goes nowhere. The
    table of a latch is written by one too: what the latch emits passes in any case.
    """

    kind: ClassVar[str] = "table_write"
    executable: ClassVar[bool] = True
    uses_tables: ClassVar[bool] = True

    box: Literal["table_write"] = "table_write"
    sql: StrictStr
    passes_failed: bool = False
    """Whether a tuple for which the statement fails passes all the same."""

    def ports(self, inputs: Sequence[Schema], scope: Scope) -> dict[str, Schema]:
        self.reads(inputs, scope)
        require_update(self.sql, scope.tables)
        return {"": inputs[0]}

    def reads(self, inputs: Sequence[Schema], _scope: Scope) -> tuple[frozenset[str], ...]:
        for name in parameters_of(self.sql):
            inputs[0].field(name)
        return (frozenset(inputs[0].names),)

    def progress(self, inputs: Sequence[ArcProgress], _schemas: Sequence[Schema]) -> ArcProgress:
        return passed(inputs[0])
