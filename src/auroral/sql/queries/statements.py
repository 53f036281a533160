"""SQL statements of read and update boxes: parsed by sqlglot, checked against the tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from auroral.errors import NetworkError, closest, list_existing
from auroral.network.types import Field, Schema
from auroral.sql.aggregates.analysis import analyze_aggregate
from auroral.sql.expressions.expression import analyze

_PARAMETER = "parameter_"
_WRITES = (exp.Update, exp.Insert, exp.Delete, exp.Merge)
_NOT_INSIDE = {
    exp.Into: "INTO",
    exp.Lock: "FOR UPDATE",
    exp.Returning: "RETURNING",
    exp.TableSample: "TABLESAMPLE",
    exp.Lateral: "LATERAL",
    exp.Unnest: "UNNEST",
    exp.SessionParameter: "a parameter of the session",
}
FUNCTIONS = (
    "abs", "avg", "case", "cast", "ceil", "coalesce", "count", "exists", "exp", "floor", "if",
    "length", "ln", "lower", "max", "min", "mod", "nullif", "position", "power", "round", "sign",
    "sqrt", "substring", "sum", "trim", "upper",
)  # fmt: skip
"""The functions that statements may call: the same in every store, and at every time."""
_ALLOWED = {
    exp.And, exp.Or, exp.Abs, exp.Avg, exp.Case, exp.Cast, exp.Ceil, exp.Coalesce, exp.Count,
    exp.Exists, exp.Exp, exp.Floor, exp.If, exp.Length, exp.Ln, exp.Lower, exp.Max, exp.Min,
    exp.Nullif, exp.StrPosition, exp.Pow, exp.Round, exp.Sign, exp.Sqrt, exp.Substring, exp.Sum,
    exp.Trim, exp.Upper,
}  # fmt: skip


@dataclass(frozen=True)
class TableStatement:
    """A statement of a read or update box that was found to be sound."""

    tree: exp.Expression
    tables: tuple[str, ...]
    """The declared tables that it names, each once; the one that it changes first."""
    parameters: tuple[str, ...]
    writes: str | None
    """The table that it changes."""


def table_statement(sql: str, tables: Iterable[str]) -> TableStatement:
    """Read a statement of a box; refuse what reaches beyond the declared tables.

    >>> found = table_statement("UPDATE accounts SET n = n + :m WHERE k = :k", ["accounts"])
    >>> found.tables, found.parameters, found.writes
    (('accounts',), ('m', 'k'), 'accounts')
    """
    tree = parse_statement(sql)
    _require_confined(tree)
    names = tuple(dict.fromkeys(_table_names(tree, tables)))
    writes = names[0] if isinstance(tree, _WRITES) else None
    if writes is not None:
        target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        writes = target.name
        names = tuple(dict.fromkeys((writes, *names)))
    return TableStatement(tree, names, parameters_of(sql), writes)


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
    _require_confined(statement)
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
    if not isinstance(statement, _WRITES):
        raise NetworkError(
            "BAD_STATEMENT",
            f"expected UPDATE, INSERT, DELETE or MERGE, found {statement.key.upper()}",
        )
    _require_confined(statement)
    _require_columns(statement, _fields(statement, tables))


def column_name(item: exp.Expression, at: int) -> str:
    """What a SELECT calls its item: its alias, its column, or by its place from 0."""
    named = isinstance(item, exp.Alias | exp.Column)
    return item.alias_or_name if named else f"column_{at + 1}"


def _as_field(node: exp.Expression) -> exp.Expression:
    if isinstance(node, exp.Placeholder):
        return exp.column(_PARAMETER + node.name)
    return exp.column(node.name) if isinstance(node, exp.Column) else node


def _require_confined(statement: exp.Expression) -> None:
    """Refuse whatever could reach files, other tables, the session or the clock."""
    for node in statement.walk():
        for kind, words in _NOT_INSIDE.items():
            if isinstance(node, kind):
                raise NetworkError("BAD_STATEMENT", f"{words} has no place in a statement of a box")
        if node is not statement and isinstance(node, _WRITES) and not _is_merge_action(node):
            found = node.key.upper()
            raise NetworkError("BAD_STATEMENT", f"expected one statement, found {found} in it")
        if isinstance(node, exp.Insert) and node.args.get("alternative"):
            found = f"INSERT OR {node.args['alternative']}"
            raise NetworkError("BAD_STATEMENT", f"expected INSERT … ON CONFLICT, found {found}")
        if isinstance(node, exp.Func) and type(node) not in _ALLOWED:
            name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
            raise NetworkError(
                "UNKNOWN_FUNCTION",
                f"statements of boxes cannot call {name.lower()}; {list_existing(FUNCTIONS)}",
                hint=closest(name, FUNCTIONS) or "compute it in a map before the box",
            )


def _is_merge_action(node: exp.Expression) -> bool:
    return node.find_ancestor(exp.When) is not None


def _table_names(statement: exp.Expression, tables: Iterable[str]) -> Iterator[str]:
    """The declared tables that a statement names; others are an error."""
    inner = {with_.alias for with_ in statement.find_all(exp.CTE)}
    for table in statement.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or table.args.get("db"):
            problem = f"expected the name of a declared table, found {table.sql()}"
            raise NetworkError("BAD_STATEMENT", f"{problem}; {list_existing(tables)}")
        if table.name in inner:
            continue
        if table.name not in tables:
            raise NetworkError(
                "UNKNOWN_TABLE",
                f"there is no table {table.name}; {list_existing(tables)}",
                hint=closest(table.name, tables),
            )
        yield table.name


def _fields(statement: exp.Expression, tables: Mapping[str, Schema]) -> Schema:
    """The fields of the tables a statement names; of two with one name, the first table's."""
    found: dict[str, Field] = {}
    for name in _table_names(statement, tables):
        for field in tables[name]:
            found.setdefault(field.name.lower(), field)
    if not found:
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
