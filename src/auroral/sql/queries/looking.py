"""One SELECT over names that are declared: nothing else can be read or called by it."""

from __future__ import annotations

from collections.abc import Collection

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError, UnsupportedError

from auroral.errors import UsageError, closest, list_existing

_REFUSED = frozenset(
    ("reflect", "try_reflect", "java_method", "identifier", "read_files", "input_file_name")
)
"""Functions that reach beyond the rows they are given."""
_XML = {"from_xml": 2, "schema_of_xml": 1}
"""Functions whose options name files, and how many arguments come before these."""
_MAKES_MUCH = (
    *(exp.Repeat, exp.Space, exp.Pad, exp.GenerateSeries, exp.Format),
    *(exp.Concat, exp.ConcatWs, exp.DPipe, exp.Replace, exp.RegexpReplace, exp.Array),
)
_MAKES_MUCH_BY_NAME = frozenset(("array_repeat", "printf", "format_string"))
_CLAUSES = (exp.QueryTransform, exp.Into, exp.Command)


def checked_select(sql: str, names: Collection[str]) -> tuple[str, list[str]]:
    """A SELECT as Spark gets it, written anew from what was checked, and the names that it reads.

    >>> checked_select("SELECT max(t) FROM recent WHERE sid = 3", ["recent"])
    ('SELECT MAX(t) FROM recent WHERE sid = 3', ['recent'])
    """
    if not isinstance(sql, str):
        raise UsageError("BAD_CALL", f"expected a SELECT as text, found {sql!r}")
    try:
        parsed = [one for one in sqlglot.parse(sql, dialect="spark") if one is not None]
    except SqlglotError as error:
        problem = (str(error).splitlines() or [""])[0]
        raise UsageError("SYNTAX_ERROR", f"cannot read {sql!r}: {problem}") from None
    except RecursionError:
        raise UsageError("SYNTAX_ERROR", "the statement is nested too deeply") from None
    if len(parsed) != 1:
        raise UsageError("BAD_STATEMENT", f"expected one statement, found {len(parsed)}")
    statement = parsed[0]
    if not isinstance(statement, exp.Query):
        begins = sql.split(maxsplit=1)[0]
        raise UsageError("BAD_STATEMENT", f"expected a SELECT, found {begins[:40]}")
    _require_harmless(statement)
    own = {cte.alias_or_name.lower() for cte in statement.find_all(exp.CTE)}
    by_name = {name.lower(): name for name in names}
    read: dict[str, None] = {}
    for table in statement.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or table.args.get("db"):
            problem = f"only declared names can be read, not {table.sql(dialect='spark')}"
            raise UsageError("UNKNOWN_TABLE", problem, hint=list_existing(names))
        name = table.name.lower()
        if name in own:
            continue
        if name not in by_name:
            raise UsageError(
                "UNKNOWN_TABLE",
                f"there is no table, connection point or view {table.name}; {list_existing(names)}",
                hint=closest(table.name, names),
            )
        read[by_name[name]] = None
    try:
        text = statement.sql(dialect="spark", unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:  # written anew it would mean something else
        problem = (str(error).splitlines() or [""])[0]
        raise UsageError("BAD_STATEMENT", f"cannot be asked here: {problem}") from None
    return text, list(read)


def makes_much(checked: str) -> bool:
    """Whether a SELECT that was checked calls what can make a large value of small ones.

    >>> makes_much("SELECT REPEAT('x', 1000000000)"), makes_much("SELECT MAX(t) FROM recent")
    (True, False)
    """
    statement = sqlglot.parse_one(checked, dialect="spark")
    if statement.find(*_MAKES_MUCH) is not None:
        return True
    return any(one.name.lower() in _MAKES_MUCH_BY_NAME for one in statement.find_all(exp.Anonymous))


def _require_harmless(statement: exp.Query) -> None:
    for kind in _CLAUSES:
        if statement.find(kind) is not None:
            raise UsageError("BAD_STATEMENT", "a SELECT can neither write nor run other programs")
    for call in statement.find_all(exp.Func):
        name = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
        if name.lower() in _XML and len(call.expressions) > _XML[name.lower()]:
            raise UsageError("BAD_STATEMENT", f"{name} takes no options here: they name files")
        if name.lower() in _REFUSED:
            raise UsageError("BAD_STATEMENT", f"the function {name} cannot be called here")
