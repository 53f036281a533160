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
from auroral.sql.statements import column_name, parse_statement

_WINDOW = re.compile(r"\[\s*((?:RANGE|ROWS|SLIDE|WA)\b[^\]]*)\]", re.IGNORECASE)
_UNION = re.compile(r"\s+UNION\s+(?!ALL\b|SELECT\b)", re.IGNORECASE)
_WINDOW_KEYS = ("RANGE", "ROWS", "SLIDE", "WA")


def query_schema(sql: str, arcs: Mapping[str, Schema]) -> Schema:
    """The schema of a query's results.

    >>> arcs = {"reports": Schema.parse("sid int, pos int")}
    >>> print(query_schema("SELECT sid, pos * 2 AS twice FROM reports WHERE pos > 90", arcs))
    sid int, twice int
    """
    for window in _WINDOW.finditer(sql):
        _require_window(window[1])
    # Streams united in FROM give one stream of their fields.
    plain = _UNION.sub(" CROSS JOIN ", _from_last(_WINDOW.sub("", sql)))
    statement = parse_statement(plain)
    if not isinstance(statement, exp.Select):
        raise NetworkError("BAD_QUERY", f"expected a SELECT, found {statement.key.upper()}")
    sources = _sources(statement, arcs)
    scope = _scope(sources)
    where = statement.args.get("where")
    if where is not None:
        found = analyze(_text(where.this), scope)
        if found.type.name != "boolean":
            raise NetworkError(
                "TYPE_MISMATCH", f"expected a predicate after WHERE, it is {found.type}"
            )
    group = statement.args.get("group")
    groups = tuple(_text(item) for item in group.expressions) if group else ()
    for text in groups:
        analyze(text, scope)
    items = statement.expressions
    aggregated = bool(groups) or any(item.find(exp.AggFunc) for item in items)
    fields: list[Field] = []
    for item in items:
        fields += _item(item, scope, sources, groups, len(fields), aggregated)
    return Schema(tuple(fields))


def _item(
    item: exp.Expression,
    scope: Schema,
    sources: Mapping[str, Schema],
    groups: tuple[str, ...],
    at: int,
    aggregated: bool,
) -> list[Field]:
    if isinstance(item, exp.Star):
        return [f for f in scope if any(f in schema.fields for schema in sources.values())]
    if item.is_star:
        return list(_source(item, sources))
    name = column_name(item, at)
    body = item.this if isinstance(item, exp.Alias) else item
    text = _text(body)
    if aggregated and text not in groups:
        plain = tuple(group for group in groups if group in scope)
        return [Field(name, analyze_aggregate(text, scope, groups=plain).type)]
    return [Field(name, analyze(text, scope).type)]


def _source(star: exp.Expression, sources: Mapping[str, Schema]) -> Schema:
    """The fields that `S.*` stands for."""
    name = star.args["table"].name if star.args.get("table") else ""
    if name not in sources:
        raise NetworkError("UNKNOWN_STREAM", f"there is no stream {name}; {known(sources)}")
    return sources[name]


def _sources(statement: exp.Select, arcs: Mapping[str, Schema]) -> dict[str, Schema]:
    """What FROM names, under the names the query gives them."""
    sources: dict[str, Schema] = {}
    for table in statement.find_all(exp.Table):
        name = f"{table.db}.{table.name}" if table.db else table.name
        if name not in arcs:
            raise NetworkError(
                "UNKNOWN_STREAM",
                f"there is no stream {name}; {known(arcs)}",
                hint=closest(name, arcs),
            )
        sources[table.alias_or_name] = arcs[name]
    if not sources:
        raise NetworkError("BAD_QUERY", f"expected FROM and a stream; {known(arcs)}")
    return sources


def _scope(sources: Mapping[str, Schema]) -> Schema:
    """The fields by name, and each source as a struct, so that `S.x` can be said too."""
    fields: dict[str, Field] = {}
    for schema in sources.values():
        for field in schema:
            fields.setdefault(field.name.lower(), field)
    for name, schema in sources.items():
        fields.setdefault(name.lower(), Field(name, Type("struct", children=schema.fields)))
    return Schema(tuple(fields.values()))


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
