"""Typed, compiled expressions, and helpers to define functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auroral.errors import NetworkError
from auroral.network.types import Type
from auroral.sql.expressions.casts import can_cast, converter
from auroral.sql.expressions.coercion import VOID, implicit, shown

Row = Mapping[str, Any]
Run = Callable[[Row], Any]


@dataclass(frozen=True)
class Typed:
    """An expression with its type and the closure that evaluates it.

    `literal` marks constants as written, which Spark's decimal rules treat apart; `constant` marks
    everything that reads no field; `name` is what `struct(…)` calls it.
    """

    type: Type
    run: Run
    literal: bool = False
    constant: bool = False
    name: str | None = None

    def value(self) -> Any:
        """The value of a constant."""
        return self.run({})


def constant(value: Any, type: Type, *, literal: bool = False) -> Typed:
    """A value that is the same for every row."""
    return Typed(type, lambda _: value, literal=literal, constant=True)


class OnlySparkError(Exception):
    """Raised for something that Spark has and the catalogue lacks; `what` names it."""

    def __init__(self, what: str):
        self.what = what
        super().__init__(what)


def cast(child: Typed, to: Type, attempt: bool = False) -> Typed:
    """The child cast to a type, unchanged if it has it."""
    if child.type == to:
        return child
    if not can_cast(child.type, to, attempt):
        raise NetworkError(
            "TYPE_MISMATCH",
            f"{'TRY_CAST' if attempt else 'CAST'}: a {shown(child.type)} cannot become a "
            f"{shown(to)}",
        )
    convert, run = converter(child.type, to, attempt), child.run

    def cast_run(row: Row) -> Any:
        value = run(row)
        return None if value is None else convert(value)

    return Typed(to, cast_run, constant=child.constant)


def strict(type: Type, args: Sequence[Typed], function: Callable[..., Any]) -> Typed:
    """A call that is NULL as soon as one argument is."""
    constant = all(arg.constant for arg in args)
    if len(args) == 1:
        (one,) = (arg.run for arg in args)

        def run_one(row: Row) -> Any:
            value = one(row)
            return None if value is None else function(value)

        return Typed(type, run_one, constant=constant)
    if len(args) == 2:
        first, second = (arg.run for arg in args)

        def run_two(row: Row) -> Any:
            left = first(row)
            if left is None:
                return None
            right = second(row)
            return None if right is None else function(left, right)

        return Typed(type, run_two, constant=constant)
    runs = [arg.run for arg in args]

    def run_all(row: Row) -> Any:
        values = []
        for run in runs:
            value = run(row)
            if value is None:
                return None
            values.append(value)
        return function(*values)

    return Typed(type, run_all, constant=constant)


def mismatch(
    name: str, args: Sequence[Typed], expected: str, hint: str | None = None
) -> NetworkError:
    """The error for arguments of the wrong type: which operator, which types."""
    found = ", ".join("NULL" if arg.type == VOID else shown(arg.type) for arg in args)
    return NetworkError("TYPE_MISMATCH", f"{name}: expected {expected}, found {found}", hint=hint)


def implicit_cast(name: str, arg: Typed, wanted: str | Type, position: int = 1) -> Typed:
    """The argument as Spark casts it for a function that wants `wanted`."""
    found = implicit(arg.type, wanted)
    if found is None:
        expected = wanted if isinstance(wanted, str) else shown(wanted)
        raise mismatch(name, [arg], f"{expected.replace('|', ' or ')} as argument {position}")
    return cast(arg, found)
