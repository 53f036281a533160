"""Continuous queries: `SELECT … FROM S [window] …` into its clauses.

sqlglot parses the statement, from which windows and unions in FROM are blanked out so that
places stay true. Expressions are taken verbatim: they are read as Spark reads them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from auroral.errors import NetworkError, closest
from auroral.sql.expressions.lexer import Token, tokens
from auroral.sql.expressions.parser import parse
from auroral.sql.queries.from_clause import FromSource, read_sources, united
from auroral.sql.queries.text import Piece
from auroral.sql.queries.windows import WindowClause, begins_window, read_window

_CLAUSES = ("select", "from", "where", "group", "having")
_KNOWN = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "kind")
_SET = ("union", "except", "intersect", "minus", "all", "distinct")


@dataclass(frozen=True)
class SelectItem:
    """One of what SELECT lists: an expression, `*` or `S.*` (then `star` is S or empty)."""

    piece: Piece
    alias: str | None = None
    star: str | None = None


@dataclass(frozen=True)
class ParsedQuery:
    """A query's clauses; `window` is the one written on the side of SELECT."""

    whole: Piece
    items: tuple[SelectItem, ...]
    sources: tuple[FromSource, ...]
    conditions: tuple[Piece, ...]
    groups: tuple[Piece, ...]
    having: Piece | None
    window: WindowClause | None
    distinct: Piece | None


Part = Token | WindowClause
Clauses = dict[str, list[Part]]


def read_query(sql: str) -> ParsedQuery:
    """Read a query; mistakes say line and column.

    >>> query = read_query("FROM S [ROWS 5] SELECT a, count(*) AS n WHERE b > 1 GROUP BY a")
    >>> [item.piece.text for item in query.items], query.sources[0].window.rows.text
    (['a', 'count(*)'], '5')
    """
    whole = Piece(sql, 0, len(sql))
    with whole.located():
        found = tokens(sql)
    while len(found) > 1 and found[-2].text == ";" and found[-2].kind == "op":
        del found[-2]
    parts = _with_windows(sql, found)
    if parts and _word(parts[0]) == "with":
        raise _piece(sql, parts[:1]).error("a query cannot hold another query")
    _refuse_window_calls(sql, found)
    clauses = _split(sql, parts)
    _require_select(sql, parts, clauses)
    select = clauses["select"]
    distinct = None
    if select and isinstance(select[0], Token) and select[0].text in ("distinct", "all"):
        first = select.pop(0)
        assert isinstance(first, Token)
        distinct = _piece(sql, [first]) if first.text == "distinct" else None
    window, listed = _select_window(select)
    sources, conditions = read_sources(sql, clauses["from"])
    where = _expression(sql, clauses, "where")
    having = _expression(sql, clauses, "having")
    return ParsedQuery(
        whole,
        tuple(_item(sql, part) for part in _by_commas(sql, listed)),
        sources,
        (*conditions, *([where] if where else [])),
        _groups(sql, clauses),
        having,
        window,
        distinct,
    )


def _refuse_window_calls(sql: str, found: list[Token]) -> None:
    """Refuse `window(at, '1 minute')`; the error shows what to write instead."""
    for token, after in pairwise(found):
        if token.kind == "word" and token.text == "window" and after.text == "(":
            raise Piece(sql, token.start, token.end).error(
                "a window stands after the stream, and not in a call of window(…)",
                code="WINDOW_FUNCTION",
                hint="for window(at, '1 minute') write FROM s [RANGE 1 minute, WA at]",
            )


def _with_windows(sql: str, found: list[Token]) -> list[Part]:
    """The tokens, each window as one."""
    parts: list[Part] = []
    at, in_from, depth = 0, False, 0
    while found[at].kind != "end":
        token = found[at]
        if token.kind == "word" and token.text in _CLAUSES and not depth:
            in_from = token.text == "from"
        if begins_window(found, at, anywhere=in_from and not depth):
            clause, at = read_window(sql, found, at)
            parts.append(clause)
            continue
        if token.kind == "op":
            depth += (token.text in "([") - (token.text in ")]")
        parts.append(token)
        at += 1
    return parts


def _split(sql: str, parts: list[Part]) -> Clauses:
    """The parts of each clause, without the words that open it."""
    clauses: Clauses = {}
    current: list[Part] = []
    depth = 0
    for at, part in enumerate(parts):
        if isinstance(part, Token) and part.kind == "op":
            depth += (part.text in "([") - (part.text in ")]")
        if isinstance(part, Token) and _opens(parts, at):
            if depth:
                if part.text == "select":
                    raise _piece(sql, [part]).error("a query cannot hold another query")
                current.append(part)
                continue
            if part.text in clauses:
                raise _second(sql, parts, at)
            current = clauses.setdefault(part.text, [])
        elif not (_word(part) == "by" and at and _opens(parts, at - 1)):
            current.append(part)
    return clauses


def _opens(parts: list[Part], at: int) -> bool:
    """Whether a word opens a clause."""
    word = _word(parts[at])
    if word == "group":
        return _word(parts[min(at + 1, len(parts) - 1)]) == "by"
    before = [_word(part) for part in parts[max(at - 2, 0) : at]]
    tested = before[-1:] == ["distinct"] and before[:1] in (["is"], ["not"])
    return word in _CLAUSES and not (word == "from" and tested)


def _second(sql: str, parts: list[Part], at: int) -> NetworkError:
    part = parts[at]
    assert isinstance(part, Token)
    if part.text == "select" and at and _word(parts[at - 1]) in _SET:
        return _piece(sql, [part]).error(
            "queries cannot be united", hint="unite streams: SELECT … FROM A UNION B"
        )
    return _piece(sql, [part]).error(f"{part.text.upper()} stands twice", code="SYNTAX_ERROR")


def _require_select(sql: str, parts: list[Part], clauses: Clauses) -> None:
    """Let sqlglot parse the statement and refuse what a continuous query has not."""
    whole = Piece(sql, 0, len(sql))
    blank = list(sql)
    for part in parts:
        if isinstance(part, WindowClause):
            blank[part.piece.start : part.piece.end] = " " * len(part.piece.text)
    for token in united(clauses.get("from", [])):
        blank[token.start : token.end] = ("," if token.text == "union" else " ").ljust(
            token.end - token.start
        )
    try:
        statement = _parsed(whole, "".join(blank))
    except NetworkError as error:
        raise _not_select(sql, parts) or error from None
    if not isinstance(statement, exp.Select):
        raise whole.error(f"expected a SELECT, found {statement.key.upper()}")
    for name, value in statement.args.items():
        if value and name not in _KNOWN:
            word = name.rstrip("_s") if name != "windows" else "window"
            at = next((p for p in parts if _word(p).startswith(word)), None)
            place = _piece(sql, [at]) if isinstance(at, Token) else whole
            raise place.error(
                f"a continuous query has no {word.upper()}", hint="its results never end"
            )
    distinct, group = statement.args.get("distinct"), statement.args.get("group")
    if distinct is not None and distinct.args.get("on"):
        raise _piece(sql, clauses["select"][:1]).error("a continuous query has no DISTINCT ON")
    if group is not None and any(v for k, v in group.args.items() if k != "expressions"):
        raise _piece(sql, clauses["group"][:1]).error("a query groups by fields and expressions")
    for clause, what in (("select", "what to select"), ("from", "a stream")):
        if not clauses.get(clause):
            raise whole.error(f"expected {clause.upper()} and {what}")


def _not_select(sql: str, parts: list[Part]) -> NetworkError | None:
    """The error for a text that does not begin with SELECT."""
    if not parts or not isinstance(parts[0], Token) or _word(parts[0]) in ("select", "from"):
        return None
    first = _piece(sql, parts[:1])
    return first.error(
        f"a query begins with SELECT, not with {first.text}",
        code="SYNTAX_ERROR",
        hint=closest(first.text, ["SELECT"]),
    )


def _parsed(whole: Piece, text: str) -> exp.Expression:
    try:
        statements = _statements(text)
    except SqlglotError as error:
        raise _syntax_error(whole, error) from None
    except RecursionError:
        raise whole.error("the query is nested too deeply", code="SYNTAX_ERROR") from None
    if len(statements) != 1:
        found = f"expected one statement, found {len(statements)}"
        raise whole.error(found, code="BAD_STATEMENT")
    return statements[0]


def _statements(text: str) -> list[exp.Expression]:
    try:
        found = sqlglot.parse(text, dialect="spark")
    except SqlglotError as error:
        # Which arguments a function takes is not for sqlglot to say.
        if "number of provided arguments" not in str(error):
            raise
        found = sqlglot.parse(text, dialect="spark", error_level=ErrorLevel.IGNORE)
    return [statement for statement in found if statement is not None]  # type: ignore[misc]


def _syntax_error(whole: Piece, error: SqlglotError) -> NetworkError:
    details = (getattr(error, "errors", None) or [{}])[0]
    problem = details.get("description") or (str(error).splitlines() or [""])[0]
    lines = whole.text.splitlines(keepends=True)
    end = sum(map(len, lines[: details.get("line", 1) - 1])) + details.get("col", 0)
    problem = _in_our_words(problem, details.get("highlight") or "", whole.text[end:].strip())
    start = max(end - len(details.get("highlight") or ""), 0)
    return whole.part(start, end).error(problem, code="SYNTAX_ERROR")


def _in_our_words(problem: str, at: str, following: str) -> str:
    """sqlglot's error message in plain words, without the names of its classes.

    >>> _in_our_words("Required keyword: 'this' missing for <class 'Where'>", "WHERE", "")
    'something is missing after WHERE'
    """
    problem = re.sub(r" for <class '.*'>| but got <Token .*>", "", problem)
    unexpected = problem.startswith("Invalid expression")
    if problem.startswith("Required keyword") or (unexpected and not following):
        return f"something is missing after {at}"
    if unexpected:
        return f"did not expect {at}"
    if problem == "Expected table name":
        return f"expected a stream after {at}"
    return re.sub(r"^Expect(ing|ed) ", "expected ", problem)


def _select_window(parts: list[Part]) -> tuple[WindowClause | None, list[Token]]:
    windows = [part for part in parts if isinstance(part, WindowClause)]
    if len(windows) > 1:
        raise windows[1].piece.error("SELECT has a second window", code="BAD_WINDOW")
    listed = [part for part in parts if isinstance(part, Token)]
    return (windows[0] if windows else None), listed


def _plain(parts: list[Part]) -> list[Token]:
    """The tokens of a clause that has no windows."""
    for part in parts:
        if isinstance(part, WindowClause):
            raise part.piece.error(
                "a window stands after a stream, or after what SELECT lists", code="BAD_WINDOW"
            )
    return [part for part in parts if isinstance(part, Token)]


def _expression(sql: str, clauses: Clauses, name: str) -> Piece | None:
    if name not in clauses:
        return None
    piece = _piece(sql, _plain(clauses[name]))
    _ = piece.tree
    return piece


def _groups(sql: str, clauses: Clauses) -> tuple[Piece, ...]:
    if "group" not in clauses:
        return ()
    return tuple(_piece(sql, part) for part in _by_commas(sql, _plain(clauses["group"])))


def _by_commas(sql: str, listed: list[Token]) -> list[list[Token]]:
    found: list[list[Token]] = [[]]
    depth = 0
    for token in listed:
        if token.kind == "op":
            depth += (token.text in "([") - (token.text in ")]")
        if token.text != "," or depth:
            found[-1].append(token)
        elif not found[-1]:
            raise _piece(sql, [token]).error(
                "expected a field or an expression", code="SYNTAX_ERROR"
            )
        else:
            found.append([])
    if not found[-1]:
        place = _piece(sql, listed[-1:]) if listed else Piece(sql, 0, len(sql))
        raise place.error("expected fields or expressions", code="SYNTAX_ERROR")
    return found


def _item(sql: str, listed: list[Token]) -> SelectItem:
    piece = _piece(sql, listed)
    if [token.text for token in listed] == ["*"]:
        return SelectItem(piece, star="")
    if len(listed) == 3 and [token.text for token in listed[1:]] == [".", "*"]:
        return SelectItem(piece, star=_name(sql, listed[0]))
    if len(listed) > 2 and listed[-2].text == "as" and listed[-1].kind in ("word", "quoted"):
        return SelectItem(_piece(sql, listed[:-2]), _name(sql, listed[-1]))
    if len(listed) > 1 and listed[-1].kind in ("word", "quoted") and not _reads(piece):
        named = _piece(sql, listed[:-1])
        if _reads(named):
            return SelectItem(named, _name(sql, listed[-1]))
    _ = piece.tree
    return SelectItem(piece)


def _reads(piece: Piece) -> bool:
    try:
        parse(piece.text)
    except NetworkError:
        return False
    return True


def _word(part: Part) -> str:
    return part.text if isinstance(part, Token) and part.kind == "word" else ""


def _name(sql: str, token: Token) -> str:
    text = sql[token.start : token.end]
    return text[1:-1].replace("``", "`") if token.kind == "quoted" else text


def _piece(sql: str, listed: list[Token] | list[Part]) -> Piece:
    """From the first to the last of some tokens; the end of the text if there are none."""
    places = [part.piece if isinstance(part, WindowClause) else part for part in listed]
    if not places:
        return Piece(sql, len(sql), len(sql))
    return Piece(sql, places[0].start, places[-1].end)
