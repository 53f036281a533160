"""Update, one tuple at a time, in a database in memory."""

from __future__ import annotations

from collections.abc import Sequence

from auroral.boxes.table_write import TableWrite
from auroral.boxes.update import Update
from auroral.network.box import Scope
from auroral.network.types import Schema
from auroral.reference.map import ReferenceMap
from auroral.reference.operator import Row, TableFailedError
from auroral.reference.table_access import TupleStatement
from auroral.tables.sqlite import SqliteTables
from auroral.tables.statements import box_statement


class ReferenceUpdate:
    """Changes a table for a tuple, then emits the report; a write passes the tuple on."""

    def __init__(
        self,
        name: str,
        box: Update | TableWrite,
        inputs: Sequence[Schema],
        scope: Scope,
        database: SqliteTables,
    ):
        statement = box_statement(name, box.sql, scope.tables, inputs[0], None)
        self._run = TupleStatement(statement, inputs[0], database)
        self._passes = isinstance(box, TableWrite) and box.passes_failed
        self._report = (
            ReferenceMap(box.reporting(box.input), inputs, scope)
            if isinstance(box, Update)
            else None
        )

    def push(self, port: int, row: Row) -> list[tuple[str, Row]]:
        try:
            self._run(row)
        except TableFailedError as error:
            error.passes = self._passes
            raise
        return [("", row)] if self._report is None else self._report.push(port, row)
