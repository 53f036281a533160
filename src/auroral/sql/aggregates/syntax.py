"""Parse the clauses that only aggregates have: DISTINCT, FILTER (WHERE …), IGNORE NULLS."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from auroral.errors import NetworkError
from auroral.sql.aggregates.functions import AGGREGATE_FUNCTIONS
from auroral.sql.expressions.lexer import Token
from auroral.sql.expressions.syntax import Call, CallPlace, Clauses, Node

_AFTER_A_NAME = ("and", "or", "is", "in", "not", "between", "like", "ilike", "rlike", "div", "as")


class ArgumentParser(Protocol):
    """The methods of the parser that reading these clauses needs."""

    tokens: list[Token]
    at: int

    def peek(self, ahead: int = 0) -> Token: ...
    def sees(self, *texts: str, ahead: int = 0) -> bool: ...
    def take(self, *texts: str) -> bool: ...
    def expect(self, text: str) -> None: ...
    def expression(self) -> Node: ...


def read_quantifier(reader: ArgumentParser) -> Clauses | None:
    """Read DISTINCT or ALL before the arguments."""
    if reader.take("distinct"):
        return Clauses(distinct=True)
    after = reader.peek(1)
    starts = after.kind in ("word", "quoted", "number", "string")
    if reader.sees("all") and starts and after.text not in _AFTER_A_NAME:
        reader.take("all")
    return None


def sees_inner_nulls(reader: ArgumentParser, name: str) -> bool:
    """Whether `first(x IGNORE NULLS)` is being read; its parenthesis is closed by `read_tail`."""
    function = AGGREGATE_FUNCTIONS.get(name)
    if function is None or function.nulls != "keep":
        return False
    return reader.sees("ignore") and reader.sees("nulls", ahead=1)


def read_tail(
    reader: ArgumentParser, call: Call, start: int, spans: tuple[tuple[int, int], ...]
) -> Call:
    """Read the clauses after the arguments; return the call with them and its place in the text."""
    clauses = call.clauses or Clauses()
    # Within the parentheses, if the last thing read is the argument and not its parenthesis.
    inner = bool(spans) and spans[-1][1] == reader.tokens[reader.at - 1].end
    if inner and sees_inner_nulls(reader, call.name):
        reader.at += 2
        reader.expect(")")
        clauses = replace(clauses, ignore_nulls=True)
    where = (0, 0)
    if reader.sees("within") and reader.sees("group", ahead=1):
        raise NetworkError(
            "UNSUPPORTED_AGGREGATE",
            f"{call.name}() WITHIN GROUP … is not supported",
            hint="percentile(x, 0.5), median(x) and mode(x) are",
        )
    if reader.sees("filter") and reader.sees("(", ahead=1):
        reader.at += 2
        reader.expect("where")
        at = reader.peek().start
        clauses = replace(clauses, where=reader.expression())
        where = (at, reader.tokens[reader.at - 1].end)
        reader.expect(")")
    if reader.sees("ignore", "respect") and reader.sees("nulls", ahead=1):
        clauses = replace(clauses, ignore_nulls=reader.sees("ignore"))
        reader.at += 2
    if reader.sees("over") and (reader.sees("(", ahead=1) or reader.peek(1).kind == "word"):
        raise NetworkError(
            "WINDOW_FUNCTION",
            f"expected a scalar expression, found the window function {call.name}() OVER …",
            hint="use an aggregate box with a window",
        )
    place = CallPlace((start, reader.tokens[reader.at - 1].end), spans, where)
    return replace(call, clauses=None if clauses == Clauses() else clauses, place=place)
