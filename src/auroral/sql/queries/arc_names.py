"""Reading other arcs than a query names: the arcs behind the names of connection points."""

from __future__ import annotations

from collections.abc import Mapping

from auroral.errors import NetworkError
from auroral.sql.queries.from_clause import arc_name
from auroral.sql.queries.queries import read_query


def with_arcs_renamed(sql: str, names: Mapping[str, str]) -> str:
    """The same query over other arcs, whose fields are qualified as before.

    A text that is no query stays as it is: whoever reads it says what is wrong.

    >>> with_arcs_renamed("SELECT recent.sid FROM recent WHERE sid > 3", {"recent": "across"})
    'SELECT recent.sid FROM across AS recent WHERE sid > 3'
    """
    if not any(name in sql for name in names):
        return sql
    try:
        sources = read_query(sql).sources
    except NetworkError:
        return sql
    changes: list[tuple[int, int, str]] = []
    for source in sources:
        for piece in source.arcs:
            name = arc_name(piece)
            if name in names:
                alone = source.alias is None and len(source.arcs) == 1
                text = f"{names[name]} AS {name}" if alone else names[name]
                changes.append((piece.start, piece.end, text))
    for start, end, text in sorted(changes, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql
