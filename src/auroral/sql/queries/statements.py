"""SQL statements of read and update boxes: parsed by sqlglot, checked against the tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from auroral.errors import NetworkError, closest, list_existing
from auroral.network.types import Field, Schema
from auroral.sql.aggregates.analysis import analyze_aggregate
from auroral.sql.expressions.expression import analyze

_PARAMETER = "parameter_"


def parameters_of(sql: str) -> tuple[str, ...]:
    """The names of a statement's `:name` parameters, in order.

    >>> parameters_of("SELECT balance FROM accounts WHERE vid = :vid")
    ('vid',)
    """
    found = list(parse_statement(sql).find_all(exp.Placeholder, exp.Parameter, bfs=False))
    odd = next((p for p in found if not isinstance(p.this, str)), None)
    if odd is not None:
        raise NetworkError("BAD_STATEMENT", f"expected parameters as :name, found {odd.sql()}")
    return tuple(dict.fromkeys(placeholder.name for placeholder in found))


def parse_statement(sql: str) -> exp.Expression:
    """Exactly one statement; a mistake points at its place."""
    try:
        statements = [s for s in sqlglot.parse(sql, dialect="postgres") if s is not None]
    except SqlglotError as error:
        details = getattr(error, "errors", None)
        place = f" at column {details[0]['col']}" if details else ""
        problem = details[0]["description"] if details else (str(error).splitlines() or [""])[0]
        problem = re.sub(r" for <class '.*'>", "", problem)
        raise NetworkError("SYNTAX_ERROR", f"cannot read {sql!r}{place}: {problem}") from None
    except RecursionError:
        raise NetworkError("SYNTAX_ERROR", "the statement is nested too deeply") from None
    if len(statements) != 1:
        raise NetworkError("BAD_STATEMENT", f"expected one statement, found {len(statements)}")
    return statements[0]  # type: ignore[return-value]


def select_schema(sql: str, tables: Mapping[str, Schema], input: Schema) -> Schema:
    """The schema of the rows that a SELECT over tables gives.

    >>> accounts = Schema.parse("vid int, balance double")
    >>> sql = "SELECT balance, :toll AS toll FROM accounts WHERE vid = :vid"
    >>> print(select_schema(sql, {"accounts": accounts}, Schema.parse("vid int, toll int")))
    balance double, toll int
    """
    statement = parse_statement(sql)
    if not isinstance(statement, exp.Select):
        raise NetworkError("BAD_STATEMENT", f"expected a SELECT, found {statement.key.upper()}")
    table = _fields(statement, tables)
    _require_columns(statement, table)
    parameters = [Field(_PARAMETER + field.name, field.type) for field in input]
    scope = Schema((*table, *parameters))
    fields: list[Field] = []
    for item in statement.expressions:
        if item.is_star:
            fields += table
            continue
        name = column_name(item, len(fields))
        body = (item.this if isinstance(item, exp.Alias) else item).copy()
        text = body.transform(_as_field).sql(dialect="spark")
        if body.find(exp.AggFunc):
            fields.append(Field(name, analyze_aggregate(text, scope).type))
        else:
            fields.append(Field(name, analyze(text, scope).type))
    return Schema(tuple(fields))


def require_update(sql: str, tables: Mapping[str, Schema]) -> None:
    """Refuse anything but an UPDATE, INSERT, DELETE or MERGE of known tables and columns."""
    statement = parse_statement(sql)
    if not isinstance(statement, exp.Update | exp.Insert | exp.Delete | exp.Merge):
        raise NetworkError(
            "BAD_STATEMENT",
            f"expected UPDATE, INSERT, DELETE or MERGE, found {statement.key.upper()}",
        )
    _require_columns(statement, _fields(statement, tables))


def column_name(item: exp.Expression, at: int) -> str:
    """What a SELECT calls its item: its alias, its column, or by its place from 0."""
    named = isinstance(item, exp.Alias | exp.Column)
    return item.alias_or_name if named else f"column_{at + 1}"


def _as_field(node: exp.Expression) -> exp.Expression:
    if isinstance(node, exp.Placeholder):
        return exp.column(_PARAMETER + node.name)
    return exp.column(node.name) if isinstance(node, exp.Column) else node


def _fields(statement: exp.Expression, tables: Mapping[str, Schema]) -> Schema:
    """The fields of the tables a statement names; of two with one name, the first table's."""
    inner = {with_.alias for with_ in statement.find_all(exp.CTE)}
    found: dict[str, Field] = {}
    names = [t.name for t in statement.find_all(exp.Table) if t.name and t.name not in inner]
    for name in names:
        if name not in tables:
            raise NetworkError(
                "UNKNOWN_TABLE",
                f"there is no table {name}; {list_existing(tables)}",
                hint=closest(name, tables),
            )
        for field in tables[name]:
            found.setdefault(field.name.lower(), field)
    if not names:
        raise NetworkError("BAD_STATEMENT", f"expected a table; {list_existing(tables)}")
    return Schema(tuple(found.values()))


def _require_columns(statement: exp.Expression, table: Schema) -> None:
    made = {alias.alias.lower() for alias in statement.find_all(exp.Alias)}
    for name in _columns(statement):
        if name.lower() not in made:
            table.field(name)


def _columns(statement: exp.Expression) -> Iterator[str]:
    yield from (c.name for c in statement.find_all(exp.Column) if not c.is_star)
    if isinstance(statement, exp.Insert) and isinstance(statement.this, exp.Schema):
        yield from (column.name for column in statement.this.expressions)
