"""Expressions over whole columns, and how they are put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auroral.eddy.vectors import operators
from auroral.eddy.vectors.batch import TupleBatch
from auroral.eddy.vectors.casts import cast_of, is_whole
from auroral.eddy.vectors.vector import Vector, absent, from_python, joined
from auroral.errors import AuroralError
from auroral.network.types import Type
from auroral.sql.expressions.casts import cast_value
from auroral.sql.expressions.coercion import BOOLEAN, common, comparable

Run = Callable[[TupleBatch], Vector]


@dataclass(frozen=True)
class Computed:
    """An expression over columns; `fallible` if it may fail for a tuple, `value` of a constant."""

    type: Type
    run: Run
    literal: bool = False
    constant: bool = False
    value: Any = None
    fallible: bool = False


def constant(value: Any, type: Type, *, literal: bool = False) -> Computed:
    """What is the same for every tuple."""
    vector = absent(type) if value is None else from_python([value], type)
    return Computed(type, lambda _: vector, literal, True, value)


def cast(child: Computed, to: Type, attempt: bool = False) -> Computed:
    """The child in another type."""
    if child.type == to:
        return child
    if child.constant and not attempt:
        try:
            return constant(cast_value(child.value, child.type, to), to)
        except AuroralError:
            pass
    convert, run = cast_of(child.type, to, attempt), child.run
    fallible = child.fallible or attempt or not is_whole(child.type, to)
    return Computed(to, lambda batch: convert(batch, run(batch)), fallible=fallible)


def sides(args: Sequence[Computed], equality: bool) -> tuple[Computed, Computed, Type] | None:
    """Both sides of a comparison in one type; None if whole columns of it cannot be compared."""
    left, right = literal_decimals(*args)
    type = comparable(left.type, right.type, equality=equality)
    if type is None or not operators.can_compare(type):
        return None
    return cast(left, type), cast(right, type), type


def literal_decimals(left: Computed, right: Computed) -> tuple[Computed, Computed]:
    """Give an integer literal beside a decimal just the digits it has."""
    if left.literal and left.type.is_integral and right.type.name == "decimal":
        left = cast(left, Type("decimal", len(str(abs(left.value)))))
    elif right.literal and right.type.is_integral and left.type.name == "decimal":
        right = cast(right, Type("decimal", len(str(abs(right.value)))))
    return left, right


def strict(type: Type, args: Sequence[Computed], function: Callable[..., Vector]) -> Computed:
    """An expression that applies a function to the vectors of its arguments."""
    runs = [arg.run for arg in args]
    fallible = any(arg.fallible for arg in args)
    return Computed(type, lambda batch: function(*(run(batch) for run in runs)), fallible=fallible)


def choose(branches: Sequence[tuple[Computed, Computed]], default: Computed | None) -> Computed:
    """CASE WHEN; a branch is computed only for the tuples that come to it."""
    results = [result for _, result in branches] + ([default] if default else [])
    type = common([result.type for result in results])
    assert type is not None
    values = [cast(result, type) for result in results]
    otherwise = values[-1].run if default else (lambda _: absent(type))
    pairs = [(test.run, value.run) for (test, _), value in zip(branches, values, strict=False)]

    def run(batch: TupleBatch) -> Vector:
        left = np.arange(batch.rows)
        parts: list[tuple[Any, Vector]] = []
        for test, value in pairs:
            here = batch.take(left)
            found = test(here).spread(len(left))
            chosen = found.data & ~found.nulls()
            if chosen.any():
                at = left[chosen]
                parts.append((at, value(batch.take(at)).spread(len(at))))
            left = left[~chosen]
        if len(left) or not parts:
            parts.append((left, otherwise(batch.take(left)).spread(len(left))))
        return joined(parts, batch.rows, type)

    fallible = any(part.fallible for pair in branches for part in pair)
    return Computed(type, run, fallible=fallible or any(value.fallible for value in values))


def logic(args: Sequence[Computed], decisive: bool) -> Computed:
    """AND and OR; what may fail is computed only for tuples the parts before leave open."""
    parts = [cast(arg, BOOLEAN) for arg in args]

    def run(batch: TupleBatch) -> Vector:
        decided, unknown = np.zeros(batch.rows, bool), np.zeros(batch.rows, bool)
        for part in parts:
            if part.fallible:
                left = np.flatnonzero(~decided)
                found = part.run(batch.take(left)).spread(len(left))
                nulls = found.nulls()
                decided[left] = (found.data == decisive) & ~nulls
                unknown[left] |= nulls
            else:
                found = part.run(batch)
                nulls = found.nulls()
                decided |= (found.data == decisive) & ~nulls
                unknown |= nulls
        valid = decided | ~unknown if unknown.any() else None
        return Vector(BOOLEAN, decided if decisive else ~decided, valid)

    return Computed(BOOLEAN, run, fallible=any(part.fallible for part in parts))
