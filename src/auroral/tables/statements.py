"""Statements of read and update boxes, written for the database that runs them.

A statement is read as PostgreSQL's SQL. Every name in it that is declared is quoted, `SELECT *`
lists the declared columns, and the rows of a SELECT are in a total order: what ORDER BY says, then
the columns from left to right. Parameters are bound by their number, never put into the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from sqlglot import exp

from auroral.errors import NetworkError
from auroral.network.types import Schema, Type
from auroral.sql.queries.statements import TableStatement, column_name, table_statement
from auroral.tables.sqlite_values import timestamp_text


@dataclass(frozen=True)
class BoxStatement:
    """The statement of one box: what it needs of a tuple, and what it gives."""

    box: str
    found: TableStatement
    parameters: tuple[tuple[str, Type], ...]
    """The fields of the tuple that are bound, in the order of their numbers."""
    columns: Schema | None
    """The columns that a SELECT gives; None: it changes a table."""
    tables: Mapping[str, Schema]
    """All declared tables."""

    @property
    def writes(self) -> bool:
        return self.columns is None


def box_statement(
    box: str, sql: str, tables: Mapping[str, Schema], input: Schema, columns: Schema | None
) -> BoxStatement:
    """Make the statement of a box ready; `columns` are what it gives if it is a SELECT."""
    found = table_statement(sql, tables)
    fields = [input.field(name) for name in found.parameters]
    bound = tuple((field.name, field.type) for field in fields)
    return BoxStatement(box, found, bound, columns, tables)


def upsert(table: str, fields: Sequence[str], key: Sequence[str]) -> str:
    """A statement that puts a tuple into a table, in the place of the row with its key.

    >>> print(upsert("latest", ["sid", "p"], ["sid"]).replace(" ON", "\\nON"))
    INSERT INTO "latest" ("sid", "p") VALUES (:sid, :p)
    ON CONFLICT ("sid") DO UPDATE SET "p" = excluded."p"
    """
    names = ", ".join(map(_quoted, fields))
    values = ", ".join(f":{name}" for name in fields)
    keys = ", ".join(map(_quoted, key))
    others = [name for name in fields if name.lower() not in {one.lower() for one in key}]
    changes = ", ".join(f"{_quoted(name)} = excluded.{_quoted(name)}" for name in others)
    action = f"DO UPDATE SET {changes}" if changes else "DO NOTHING"
    insert = f"INSERT INTO {_quoted(table)} ({names}) VALUES ({values})"
    return f"{insert} ON CONFLICT ({keys}) {action}"


def sqlite_text(statement: BoxStatement) -> str:
    """A statement for SQLite; parameters are `?1`, `?2`, …"""
    if isinstance(statement.found.tree, exp.Merge):
        raise NetworkError(
            "BAD_STATEMENT", "SQLite has no MERGE", hint="write INSERT … ON CONFLICT … DO UPDATE"
        )
    tree = _bound(statement, lambda number, _type: exp.Var(this=f"?{number}"))
    tree = tree.transform(_sqlite_times)
    return tree.sql(dialect="sqlite", comments=False)


def postgres_text(statement: BoxStatement) -> str:
    """A statement for PostgreSQL; parameters are `$1`, `$2`, … of the declared types."""
    tree = _bound(statement, lambda n, type: _cast(exp.Var(this=f"${n}"), type))
    return tree.sql(dialect="postgres", comments=False)


def postgres_batch(statement: BoxStatement) -> str:
    """One SELECT for many tuples: parameters are arrays, the first column numbers the tuples.

    Without parameters the only one is how many tuples there are.
    """
    assert statement.columns is not None
    tree = _bound(statement, lambda n, _type: exp.Var(this=f"_given.p{n}"))
    inner = tree.sql(dialect="postgres", comments=False)
    arrays = [
        f"${n}::{postgres_type(type)}[]" for n, (_, type) in enumerate(statement.parameters, 1)
    ]
    names = [f"p{n}" for n in range(1, len(statement.parameters) + 1)]
    given = f"unnest({', '.join(arrays)}) WITH ORDINALITY AS _given({', '.join(names)}, n)"
    if not arrays:
        given = "generate_series(1, $1::bigint) AS _given(n)"
    columns = ", ".join(f"c{n}" for n in range(1, len(statement.columns) + 1))
    return (
        f"SELECT _given.n, {columns} FROM {given}"
        f" CROSS JOIN LATERAL (SELECT *, row_number() OVER () FROM ({inner}) AS _rows)"
        f" AS _found({columns}, _row) ORDER BY _given.n, _found._row"
    )


POSTGRES_TYPES: Mapping[str, str] = {
    "boolean": "boolean",
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
}


def postgres_type(type: Type) -> str:
    """What a type is in PostgreSQL."""
    if type.name == "decimal":
        return f"numeric({type.precision},{type.scale})"
    return POSTGRES_TYPES[type.name]


def _bound(
    statement: BoxStatement, parameter: Callable[[int, Type], exp.Expression]
) -> exp.Expression:
    """The statement with declared names quoted and parameters as the database has them."""
    numbers = {name: n for n, name in enumerate(statement.found.parameters, 1)}
    types = [type for _, type in statement.parameters]
    tree = statement.found.tree.copy()
    _list_columns(tree, statement)
    _quote(tree, statement)
    if isinstance(tree, exp.Select):
        _order(tree)
    for found in list(tree.find_all(exp.Placeholder)):
        number = numbers[found.name]
        found.replace(parameter(number, types[number - 1]))
    return tree


def _list_columns(tree: exp.Expression, statement: BoxStatement) -> None:
    """Name the columns where a statement means all: a database may have more, in other order."""
    if isinstance(tree, exp.Insert) and isinstance(tree.this, exp.Table):
        names = [exp.to_identifier(field.name) for field in statement.tables[tree.this.name]]
        tree.set("this", exp.Schema(this=tree.this, expressions=names))
    if isinstance(tree, exp.Insert) and tree.args.get("conflict"):
        keys = tree.args["conflict"].args.get("conflict_keys") or []
        plain = [key.this if isinstance(key, exp.Ordered) else key for key in keys]
        tree.args["conflict"].set("conflict_keys", plain)
    if isinstance(tree, exp.Select):
        listed: list[exp.Expression] = []
        for item in tree.expressions:
            listed += _starred(tree, statement) if item.is_star else [_named(item, len(listed))]
        tree.set("expressions", listed)


def _starred(tree: exp.Select, statement: BoxStatement) -> list[exp.Expression]:
    """The columns of all tables of FROM; of two with one name, the first table's."""
    sources = [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or ())]
    found: dict[str, exp.Expression] = {}
    for source in sources:
        if isinstance(source, exp.Table) and source.name in statement.tables:
            for field in statement.tables[source.name]:
                column = exp.column(field.name, table=source.alias_or_name)
                found.setdefault(field.name.lower(), column)
    return list(found.values())


def _named(item: exp.Expression, at: int) -> exp.Expression:
    if isinstance(item, exp.Alias | exp.Column):
        return item
    return exp.Alias(this=item, alias=exp.to_identifier(column_name(item, at), quoted=True))


def _quote(tree: exp.Expression, statement: BoxStatement) -> None:
    """Quote the names of declared tables and of their columns, as they were declared."""
    tables = {name.lower(): name for name in statement.found.tables}
    fields = {
        field.name.lower(): field.name
        for name in reversed(statement.found.tables)
        for field in statement.tables[name]
    }
    made = {alias.alias.lower() for alias in tree.find_all(exp.Alias)}
    for table in tree.find_all(exp.Table):
        if table.name.lower() in tables:
            table.set("this", exp.to_identifier(tables[table.name.lower()], quoted=True))
    for column in tree.find_all(exp.Column):
        name, of = column.name.lower(), column.table.lower()
        if name in fields and (of or name not in made):
            column.set("this", exp.to_identifier(fields[name], quoted=True))
        if of in tables:
            column.set("table", exp.to_identifier(tables[of], quoted=True))
    for schema in tree.find_all(exp.Schema):
        names = [fields[name.name.lower()] for name in schema.expressions]
        schema.set("expressions", [exp.to_identifier(name, quoted=True) for name in names])


def _order(tree: exp.Select) -> None:
    """Put the rows in a total order, the columns breaking ties."""
    given = tree.args.get("order")
    columns = [
        exp.Ordered(this=exp.Literal.number(n), desc=False, nulls_first=True)
        for n in range(1, len(tree.expressions) + 1)
    ]
    tree.set("order", exp.Order(expressions=[*(given.expressions if given else ()), *columns]))


def _cast(node: exp.Expression, type: Type) -> exp.Expression:
    return exp.Cast(this=node, to=exp.DataType.build(postgres_type(type), dialect="postgres"))


def _sqlite_times(node: exp.Expression) -> exp.Expression:
    """Dates and timestamps are texts in SQLite; write constants as columns have them."""
    if not isinstance(node, exp.Cast) or not node.to.is_type(*exp.DataType.TEMPORAL_TYPES):
        return node
    if isinstance(node.this, exp.Literal) and node.this.is_string:
        try:
            if node.to.is_type(exp.DataType.Type.DATE):
                return exp.Literal.string(date.fromisoformat(node.this.name).isoformat())
            at = datetime.fromisoformat(node.this.name)
            return exp.Literal.string(timestamp_text(at if at.tzinfo else at.replace(tzinfo=UTC)))
        except ValueError:
            pass
    raise NetworkError(
        "BAD_STATEMENT",
        f"in SQLite only constants can be cast to a date or timestamp, found {node.sql()}",
        hint="compute it in a map before the box",
    )


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
