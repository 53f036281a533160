"""Continuous queries: `SELECT … FROM S [window] …`, checked against the arcs.

The papers write windows in brackets after a source; they are taken out before sqlglot parses
the rest, and checked apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from auroral.errors import NetworkError, closest, known
from auroral.network.types import Field, Schema, Type
from auroral.sql.aggregates import analyze_aggregate
from auroral.sql.expression import analyze
from auroral.sql.statements import parse_statement

_WINDOW = re.compile(r"\[\s*((?:RANGE|ROWS|SLIDE|WA)\b[^\]]*)\]", re.IGNORECASE)
_WINDOW_KEYS = ("RANGE", "ROWS", "SLIDE", "WA")


def query_schema(sql: str, arcs: Mapping[str, Schema]) -> Schema:
    """The schema of a query's results.

    >>> arcs = {"reports": Schema.parse("sid int, pos int")}
    >>> print(query_schema("SELECT sid, pos * 2 AS twice FROM reports WHERE pos > 90", arcs))
    sid int, twice int
    """
    for window in _WINDOW.finditer(sql):
        _require_window(window[1])
    plain = _from_last(_WINDOW.sub("", sql)).replace(" UNION ", " CROSS JOIN ")
    statement = parse_statement(plain)
    if not isinstance(statement, exp.Select):
        raise NetworkError("BAD_QUERY", f"expected a SELECT, found {statement.key.upper()}")
    scope = _scope(statement, arcs)
    where = statement.args.get("where")
    if where is not None:
        found = analyze(_text(where.this), scope)
        if found.type.name != "boolean":
            raise NetworkError(
                "TYPE_MISMATCH", f"expected a predicate after WHERE, it is {found.type}"
            )
    group = statement.args.get("group")
    groups = tuple(_text(item) for item in group.expressions) if group else ()
    fields: list[Field] = []
    for item in statement.expressions:
        fields += _item(item, scope, groups, len(fields))
    return Schema(tuple(fields))


def _item(item: exp.Expression, scope: Schema, groups: tuple[str, ...], at: int) -> list[Field]:
    if isinstance(item, exp.Star):
        return [field for field in scope if field.type.name != "struct"]
    name = item.alias_or_name or f"column_{at + 1}"
    body = item.this if isinstance(item, exp.Alias) else item
    text = _text(body)
    if body.find(exp.AggFunc):
        plain = tuple(group for group in groups if group in scope)
        return [Field(name, analyze_aggregate(text, scope, groups=plain).type)]
    return [Field(name, analyze(text, scope).type)]


def _scope(statement: exp.Select, arcs: Mapping[str, Schema]) -> Schema:
    """The fields by name, and each source as a struct, so that `S.x` can be said too."""
    sources: dict[str, Schema] = {}
    for table in statement.find_all(exp.Table):
        if table.name not in arcs:
            raise NetworkError(
                "UNKNOWN_STREAM",
                f"there is no stream {table.name}; {known(arcs)}",
                hint=closest(table.name, arcs),
            )
        sources[table.alias_or_name] = arcs[table.name]
    if not sources:
        raise NetworkError("BAD_QUERY", f"expected FROM and a stream; {known(arcs)}")
    fields: dict[str, Field] = {}
    for schema in sources.values():
        for field in schema:
            fields.setdefault(field.name.lower(), field)
    structs = [
        Field(name, Type("struct", children=schema.fields))
        for name, schema in sources.items()
        if name.lower() not in fields
    ]
    return Schema((*fields.values(), *structs))


def _require_window(text: str) -> None:
    for part in text.split(","):
        key = part.split(maxsplit=1)[0].upper() if part.strip() else ""
        if key not in _WINDOW_KEYS:
            raise NetworkError(
                "BAD_WINDOW", f"expected {', '.join(_WINDOW_KEYS)} in a window, found {part!r}"
            )


def _from_last(sql: str) -> str:
    """`FROM S SELECT x` as `SELECT x FROM S`."""
    early = re.fullmatch(
        r"\s*(FROM\b.*?)\b(SELECT\b.*?)(\bWHERE\b.*|\bGROUP\b.*)?", sql, re.IGNORECASE | re.DOTALL
    )
    return f"{early[2]} {early[1]} {early[3] or ''}" if early else sql


def _text(node: exp.Expression) -> str:
    return node.sql(dialect="spark")
