"""Functions that Spark's workers import by name."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def picky(values: pa.Array) -> pa.Array:
    """What it got; it fails for 2."""
    if pc.any(pc.equal(values, 2)).as_py():
        raise ValueError("two")
    return values


def odd(values: pa.Array) -> list[bool | None]:
    """Whether numbers are odd; it fails for those below -2."""
    numbers = values.to_pylist()
    if any(number is not None and number < -2 for number in numbers):
        raise ValueError("too low")
    return [None if number is None else number % 2 == 1 for number in numbers]
