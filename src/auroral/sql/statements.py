"""SQL statements of read and update boxes: parsed by sqlglot, checked against the tables."""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from auroral.errors import NetworkError, closest, known
from auroral.network.types import Field, Schema
from auroral.sql.aggregates import analyze_aggregate
from auroral.sql.expression import analyze

_PARAMETER = "parameter_"


def parameters_of(sql: str) -> tuple[str, ...]:
    """The names of a statement's `:name` parameters, in order.

    >>> parameters_of("SELECT balance FROM accounts WHERE vid = :vid")
    ('vid',)
    """
    found = parse_statement(sql).find_all(exp.Placeholder)
    names = {placeholder.name: None for placeholder in found if placeholder.name}
    return tuple(sorted(names, key=lambda name: sql.index(f":{name}")))


def parse_statement(sql: str) -> exp.Expression:
    """Exactly one statement; a mistake points at its place."""
    try:
        statements = [s for s in sqlglot.parse(sql, dialect="postgres") if s is not None]
    except SqlglotError as error:
        details = getattr(error, "errors", None)
        place = f" at column {details[0]['col']}" if details else ""
        problem = details[0]["description"] if details else str(error).splitlines()[0]
        raise NetworkError("SYNTAX_ERROR", f"cannot read {sql!r}{place}: {problem}") from None
    if len(statements) != 1:
        raise NetworkError("BAD_STATEMENT", f"expected one statement, found {len(statements)}")
    return statements[0]  # type: ignore[return-value]


def select_schema(sql: str, tables: Mapping[str, Schema], input: Schema) -> Schema:
    """The schema of the rows that a SELECT over one table gives."""
    statement = parse_statement(sql)
    if not isinstance(statement, exp.Select):
        raise NetworkError("BAD_STATEMENT", f"expected a SELECT, found {statement.key.upper()}")
    table = _table(statement, tables)
    parameters = [Field(_PARAMETER + field.name, field.type) for field in input]
    scope = Schema((*table.fields, *parameters))
    fields: list[Field] = []
    for item in statement.expressions:
        if isinstance(item, exp.Star):
            fields += table.fields
            continue
        name = item.alias_or_name or f"column_{len(fields) + 1}"
        body = (item.this if isinstance(item, exp.Alias) else item).copy()
        text = body.transform(_as_field).sql(dialect="spark")
        if body.find(exp.AggFunc):
            fields.append(Field(name, analyze_aggregate(text, scope).type))
        else:
            fields.append(Field(name, analyze(text, scope).type))
    return Schema(tuple(fields))


def require_update(sql: str, tables: Mapping[str, Schema]) -> None:
    """Refuse anything but an UPDATE, INSERT, DELETE or MERGE of a known table."""
    statement = parse_statement(sql)
    if not isinstance(statement, exp.Update | exp.Insert | exp.Delete | exp.Merge):
        raise NetworkError(
            "BAD_STATEMENT",
            f"expected UPDATE, INSERT, DELETE or MERGE, found {statement.key.upper()}",
        )
    _table(statement, tables)


def _as_field(node: exp.Expression) -> exp.Expression:
    if isinstance(node, exp.Placeholder):
        return exp.column(_PARAMETER + node.name)
    return exp.column(node.name) if isinstance(node, exp.Column) else node


def _table(statement: exp.Expression, tables: Mapping[str, Schema]) -> Schema:
    names = [table.name for table in statement.find_all(exp.Table)]
    for name in names:
        if name not in tables:
            raise NetworkError(
                "UNKNOWN_TABLE",
                f"there is no table {name}; {known(tables)}",
                hint=closest(name, tables),
            )
    if not names:
        raise NetworkError("BAD_STATEMENT", f"expected a table; {known(tables)}")
    return tables[names[0]]
