"""A statement run for one tuple."""

from __future__ import annotations

import pyarrow as pa

from auroral.network.types import Schema
from auroral.reference.operator import Row, TableFailedError
from auroral.tables.sqlite import SqliteTables
from auroral.tables.statements import BoxStatement
from auroral.tables.store import StatementRun


class TupleStatement:
    """Runs the statement of a box in a transaction of its own; the rows that it gives."""

    def __init__(self, statement: BoxStatement, input: Schema, database: SqliteTables):
        database.prepare(statement)
        self._statement, self._input, self._database = statement, input, database

    def __call__(self, row: Row) -> list[Row]:
        tuples = pa.Table.from_pylist([row], self._input.arrow())
        batch = self._database.parameters(self._statement, tuples)
        with self._database.transaction(writes=True) as transaction:
            transaction.run([batch], [StatementRun(0, 0, 1)])
        rows: list[Row] = [] if self._statement.writes else batch.result()[0].to_pylist()
        for reason in batch.failures.values():
            raise TableFailedError(reason)
        return rows
