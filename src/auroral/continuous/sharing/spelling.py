"""An expression's tree as text: one text for all ways to write it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Any

from auroral.errors import NetworkError
from auroral.network.types import quoted
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import (
    Call,
    Case,
    Cast,
    IndexAccess,
    Lambda,
    Literal,
    Member,
    Name,
    Node,
)
from auroral.sql.expressions.times import timestamp_text
from auroral.sql.queries.names import substituted

_BINARY = frozenset(("=", "<=>", "<>", "<", "<=", ">", ">=", "|", "^", "&", "+", "-", "*", "/"))
_BINARY |= {"%", "div"}
_TESTS = {"like": "LIKE", "ilike": "ILIKE", "rlike": "RLIKE"}
_SIGNS = {"negative": "-", "positive": "+", "~": "~"}
_SUFFIXES = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_UNITS = (
    ("DAY", 86_400_000_000),
    ("HOUR", 3_600_000_000),
    ("MINUTE", 60_000_000),
    ("SECOND", 1_000_000),
)
_JOINED = re.compile(r"(s[0-9]+)\.(.+)", re.DOTALL)

Quote = Callable[[str], str]


def spelled(tree: Node, *, joined: bool = False) -> str | None:
    """The text that reads as this tree, None if there is none.

    Of joined tuples the field `x` of the n-th source is the name `sn.x` of the tree.

    >>> spelled(parse("PRICE+ 1>( 2.50 *vol )"))
    '(PRICE + 1) > (2.50BD * vol)'
    """
    for quote in (quoted, _backticked):
        writer = _Writer(quote, joined)
        try:
            text = writer.whole(tree)
            if parse(text) == (_dotted(tree) if joined else tree):
                return text
        except (NetworkError, KeyError, ValueError):
            continue
    return None


def _backticked(name: str) -> str:
    return f"`{name}`"


def _dotted(tree: Node) -> Node:
    """The tree with `sn.x` in two parts, as it is read."""

    def look(node: Node) -> Node | None:
        match = _JOINED.fullmatch(node.name) if isinstance(node, Name) else None
        return Member(Name(match[1]), match[2]) if match else None

    return substituted(tree, look)


class _Writer:
    def __init__(self, quote: Quote, joined: bool):
        self.quote = quote
        self.joined = joined

    def whole(self, node: Node) -> str:
        match node:
            case Literal():
                return _literal(node)
            case Name(name):
                return self.name(name)
            case Member(base, name):
                return f"{self.part(base)}.{self.quote(name)}"
            case IndexAccess(base, index):
                return f"{self.part(base)}[{self.whole(index)}]"
            case Cast(child, to, attempt):
                return f"{'TRY_CAST' if attempt else 'CAST'}({self.whole(child)} AS {to})"
            case Case(branches, default):
                tests = [f"WHEN {self.whole(a)} THEN {self.whole(b)}" for a, b in branches]
                other = "" if default is None else f" ELSE {self.whole(default)}"
                return f"CASE {' '.join(tests)}{other} END"
            case Lambda(parameters, body):
                names = ", ".join(map(self.quote, parameters))
                names = f"({names})" if len(parameters) > 1 else names
                return f"{names} -> {self.whole(body)}"
        return self.call(node)

    def name(self, name: str) -> str:
        if name.startswith(":"):
            return name
        match = _JOINED.fullmatch(name) if self.joined else None
        return f"{match[1]}.{self.quote(match[2])}" if match else self.quote(name)

    def part(self, node: Node) -> str:
        """An operand, in brackets unless it needs none."""
        text = self.whole(node)
        single = isinstance(node, Name | Member | IndexAccess | Cast | Case)
        if isinstance(node, Call):
            single = not self.is_operator(node)
        elif isinstance(node, Literal):
            single = not text.startswith(("-", "INTERVAL"))
        return text if single else f"({text})"

    def is_operator(self, call: Call) -> bool:
        name = call.name
        special = ("and", "or", "not", "in", "isnull", "isunknown", *_TESTS, *_SIGNS)
        return name in _BINARY or name in special

    def call(self, call: Call) -> str:
        name, args = call.name, call.args
        if call.clauses is not None:
            raise ValueError(name)
        if name in _BINARY and len(args) == 2:
            return f"{self.part(args[0])} {name} {self.part(args[1])}"
        if name in ("and", "or"):
            return f" {name.upper()} ".join(map(self.part, args))
        if name == "not":
            return f"NOT {self.part(args[0])}"
        if name == "isnull":
            return f"{self.part(args[0])} IS NULL"
        if name == "isunknown":
            return f"{self.part(args[0])} IS UNKNOWN"
        if name == "in":
            return f"{self.part(args[0])} IN ({', '.join(map(self.whole, args[1:]))})"
        if name in _TESTS:
            escape = f" ESCAPE {self.whole(args[2])}" if len(args) == 3 else ""
            return f"{self.part(args[0])} {_TESTS[name]} {self.part(args[1])}{escape}"
        if name in _SIGNS:
            return f"{_SIGNS[name]}({self.whole(args[0])})"
        aliases = call.aliases or [None] * len(args)
        parts = [
            self.whole(arg) + (f" AS {self.quote(alias)}" if alias else "")
            for arg, alias in zip(args, aliases, strict=True)
        ]
        return f"{name}({', '.join(parts)})"


def _literal(literal: Literal) -> str:
    value, name = literal.value, literal.type.name
    if value is None:
        return "NULL"
    if name == "boolean":
        return "TRUE" if value else "FALSE"
    if name in _SUFFIXES:
        return f"{value}{_SUFFIXES[name]}"
    if name == "decimal":
        return f"{value:f}BD"
    if name in ("float", "double"):
        return f"{value!r}{name[0].upper()}"
    if name == "string":
        escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if name == "binary":
        return f"X'{value.hex()}'"
    if name == "date":
        return f"DATE '{date.isoformat(value)}'"
    if name.startswith("timestamp"):
        return f"{name.upper()} '{timestamp_text(value)}'"
    if name == "interval_ym":
        return f"INTERVAL {value} MONTH"
    return _interval(value, literal.type.precision, literal.type.scale)


def _interval(micros: int, first: int, last: int) -> str:
    sign, rest = ("-" if micros < 0 else ""), abs(micros)
    parts = []
    for unit, size in _UNITS[first : last + 1]:
        amount: Any = rest // size
        rest -= amount * size
        if unit == "SECOND" and rest:
            amount, rest = f"{amount}.{rest:06}", 0
        parts.append(f"{sign}{amount} {unit}")
    if rest:
        raise ValueError(micros)
    return f"INTERVAL {' '.join(parts)}"
