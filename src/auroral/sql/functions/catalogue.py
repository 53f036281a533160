"""The catalogue: every function and operator the reference evaluator knows, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from auroral.errors import NetworkError
from auroral.network.types import Type
from auroral.sql.expressions.typed import Typed, implicit_cast, strict

Build = Callable[[Sequence[Typed]], Typed]
COSTLY = frozenset(
    (
        *("rlike", "regexp", "regexp_like", "regexp_extract", "regexp_replace", "split"),
        *("like", "ilike", "repeat", "space", "lpad", "rpad", "replace", "hex"),
        *("concat", "concat_ws", "substring_index", "trim", "ltrim", "rtrim", "btrim"),
    )
)
"""Functions that a short text can keep busy for long, or let make much of little."""
_NOT_FOLDED = COSTLY - {"concat", "hex", "trim", "ltrim", "rtrim", "btrim"}
"""Calls that are never computed while an expression is only read, though they read no field."""


@dataclass(frozen=True)
class SqlFunction:
    """A name, how many arguments it takes, and how a call is typed and compiled."""

    name: str
    least: int
    most: int | None
    build: Build

    def call(self, args: Sequence[Typed]) -> Typed:
        if len(args) < self.least or (self.most is not None and len(args) > self.most):
            raise NetworkError(
                "WRONG_ARITY", f"{self.name} takes {self._arity()}, found {len(args)}"
            )
        built = self.build(args)
        return replace(built, constant=False) if self.name in _NOT_FOLDED else built

    def _arity(self) -> str:
        noun = "argument" if self.most == 1 else "arguments"
        if self.most is None:
            return f"at least {self.least} {'argument' if self.least == 1 else 'arguments'}"
        if self.least == self.most:
            return f"{self.least or 'no'} {noun}"
        return f"{self.least} to {self.most} {noun}"


CATALOGUE: dict[str, SqlFunction] = {}


def register(names: str, least: int, most: int | None = -1) -> Callable[[Build], Build]:
    """Enter a function under each of the `names`; `most` None means any number of arguments."""

    def enter(build: Build) -> Build:
        for name in names.split():
            CATALOGUE[name] = SqlFunction(name, least, least if most == -1 else most, build)
        return build

    return enter


def simple(
    names: str,
    inputs: Sequence[str | Type],
    output: Type,
    function: Callable[..., Any],
    least: int = -1,
) -> None:
    """Enter a function with fixed argument types that is NULL as soon as an argument is."""
    first = names.split()[0]

    def build(args: Sequence[Typed]) -> Typed:
        cast_args = [
            implicit_cast(first, arg, wanted, position)
            for position, (arg, wanted) in enumerate(zip(args, inputs, strict=False), 1)
        ]
        return strict(output, cast_args, function)

    register(names, len(inputs) if least == -1 else least, len(inputs))(build)
