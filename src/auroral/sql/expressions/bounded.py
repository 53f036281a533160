"""Functions for conditions of others: what they may take and make is bounded for each tuple."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from auroral.errors import NetworkError, RunError
from auroral.sql.expressions.coercion import BOOLEAN, INT, STRING
from auroral.sql.expressions.linear_regex import is_plain, linear_search
from auroral.sql.expressions.typed import OnlySparkError, Typed, implicit_cast, strict
from auroral.sql.functions.catalogue import CATALOGUE, COSTLY, SqlFunction

MOST_CHARS = 1 << 20
"""So many characters may the functions of an expression make of one tuple."""
RLIKE = frozenset(("rlike", "regexp", "regexp_like"))
_COMPARED = 16
"""So many comparisons of a search cost as much as one character that is made."""
Produced = Callable[..., int]


class Allowance:
    """What is left of it for the tuple at hand."""

    def __init__(self, most: int = MOST_CHARS):
        self._most = most
        self.left = most

    def renew(self) -> None:
        """Begin another tuple."""
        self.left = self._most

    def take(self, chars: int) -> None:
        """Use it up; what needs more is not computed."""
        self.left -= chars
        if self.left < 0:
            raise RunError("TOO_LARGE", f"the condition makes more than {self._most} characters")


def bounded_catalogue(allowance: Allowance) -> Mapping[str, SqlFunction]:
    """The catalogue, in which costly functions ask the allowance first.

    >>> catalogue = bounded_catalogue(Allowance())
    >>> catalogue.keys() == CATALOGUE.keys()
    True
    """
    changed = {name: _bounded(CATALOGUE[name], allowance) for name in COSTLY}
    return {**CATALOGUE, **changed}


def _bounded(function: SqlFunction, allowance: Allowance) -> SqlFunction:
    name, produced = function.name, _PRODUCED.get(function.name)

    def build(args: Sequence[Typed]) -> Typed:
        if name in RLIKE:
            text, pattern = (
                implicit_cast("RLIKE", arg, STRING, at) for at, arg in enumerate(args, 1)
            )
            return strict(BOOLEAN, [text], linear_search(_written(name, pattern)))
        if name in ("regexp_extract", "regexp_replace", "split"):
            _require_plain(name, _written(name, args[1]))
        assert produced is not None
        args = [
            implicit_cast(name, arg, INT, at + 1) if at == _SIZES.get(name) else arg
            for at, arg in enumerate(args)
        ]
        known = [arg.value() if arg.literal else None for arg in args]
        if produced(*known) > MOST_CHARS:
            raise NetworkError(
                "BAD_CONDITION", f"{name} would make more than {MOST_CHARS} characters"
            )
        runs = [arg.run for arg in args]
        # Values are computed once, and what is written as a literal stays visible as one.
        taken = [
            arg if arg.literal else replace(arg, run=itemgetter(at), constant=False)
            for at, arg in enumerate(args)
        ]
        built = function.build(taken)

        def run(row: Any) -> Any:
            values = [one(row) for one in runs]
            allowance.take(produced(*values))
            return built.run(values)  # type: ignore[arg-type]

        return Typed(built.type, run)

    return SqlFunction(name, function.least, function.most, build)


def _written(name: str, pattern: Typed) -> str:
    if not pattern.literal or not isinstance(pattern.value(), str):
        raise OnlySparkError(f"{name} with a pattern that is not written out")
    return str(pattern.value())


def _require_plain(name: str, pattern: str) -> None:
    if not is_plain(pattern):
        raise NetworkError(
            "BAD_CONDITION",
            f"{name} may take too long: {pattern!r:.100} repeats or has alternatives",
            hint="use rlike, or a pattern without * + ? { |",
        )


def _size(value: Any) -> int:
    if value is None or isinstance(value, (bool, int, float)):
        return 0 if value is None else 24
    if isinstance(value, list):
        return sum(_size(item) + 1 for item in value)
    return len(value) if isinstance(value, (str, bytes)) else 64


def _joined(glue: Any, *parts: Any) -> int:
    count = sum(len(part) if isinstance(part, list) else 1 for part in parts)
    return _size(glue) * count + sum(map(_size, parts))


def _compared(*values: Any) -> int:
    first, second = (_size(value) for value in values[:2])
    return first * second // _COMPARED


def _replaced(text: Any, old: Any, new: Any = "") -> int:
    if not isinstance(text, str) or not isinstance(old, str) or not old:
        return _size(text)
    return len(text) + text.count(old) * _size(new)


_PRODUCED: dict[str, Produced] = {
    "repeat": lambda text, count: max(_size(text), 1) * max(count or 0, 0),
    "space": lambda count: max(count or 0, 0),
    "lpad": lambda _text, size, pad=" ": max(size or 0, 0) + _size(pad),
    "rpad": lambda _text, size, pad=" ": max(size or 0, 0) + _size(pad),
    "replace": _replaced,
    "hex": lambda value: 2 * _size(value),
    "concat": lambda *parts: sum(map(_size, parts)),
    "concat_ws": _joined,
    "substring_index": _compared,
    "trim": lambda *values: _compared(*values, ""),
    "ltrim": lambda *values: _compared(*values, ""),
    "rtrim": lambda *values: _compared(*values, ""),
    "btrim": lambda *values: _compared(*values, ""),
    "like": _compared,
    "ilike": _compared,
    "regexp_extract": _compared,
    "regexp_replace": lambda text, pattern, by, *_: (
        _compared(text, pattern) + (_size(text) + 1) * max(_size(by), 1)
    ),
    "split": lambda text, pattern, *_: _compared(text, pattern) + _size(text),
}
"""How much a call makes, or how long it compares, of these values; None: not known yet."""
_SIZES = {"repeat": 1, "space": 0, "lpad": 1, "rpad": 1}
"""The argument that says how much."""
