"""Read, one tuple at a time, in a database in memory."""

from __future__ import annotations

from collections.abc import Sequence

from auroral.boxes.read import Read
from auroral.network.box import Scope
from auroral.network.types import Schema
from auroral.reference.operator import Row
from auroral.reference.table_access import TupleStatement
from auroral.tables.sqlite import SqliteTables
from auroral.tables.statements import box_statement


class ReferenceRead:
    """Emits the rows that its statement gives for a tuple.

    >>> from auroral.network.declarations import Table
    >>> accounts = Table.model_validate({"schema": "vid int, n int", "key": ["vid"]})
    >>> database = SqliteTables(None)
    >>> database.ensure("accounts", accounts, None)
    >>> box = Read(input="s", sql="SELECT count(*) AS n FROM accounts WHERE vid = :vid")
    >>> scope = Scope(tables={"accounts": accounts.schema_})
    >>> ReferenceRead("r", box, [Schema.parse("vid int")], scope, database).push(0, {"vid": 7})
    [('', {'n': 0})]
    """

    def __init__(
        self,
        name: str,
        box: Read,
        inputs: Sequence[Schema],
        scope: Scope,
        database: SqliteTables,
    ):
        columns = box.columns(inputs, scope)
        statement = box_statement(name, box.sql, scope.tables, inputs[0], columns)
        self._run = TupleStatement(statement, inputs[0], database)
        self._keep = box.kept(inputs[0])

    def push(self, _port: int, row: Row) -> list[tuple[str, Row]]:
        kept = {name: row[name] for name in self._keep}
        return [("", {**kept, **found}) for found in self._run(row)]
