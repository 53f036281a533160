"""The tuples an expression is computed for, and where its computation failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.continuous.functions import PythonFunction
from auroral.eddy.vectors.vector import Bools, Vector, from_arrow, plain
from auroral.kernels.calling import described
from auroral.network.types import Type

Indices = npt.NDArray[np.int64]


class TupleFailures:
    """Which tuples failed, and why the first did."""

    def __init__(self, rows: int):
        self.rows = rows
        self.mask: Bools | None = None
        self.reason: str | None = None

    def add(self, at: Indices, reason: str) -> None:
        if self.mask is None:
            self.mask = np.zeros(self.rows, bool)
        self.mask[at] = True
        self.reason = self.reason or reason


@dataclass
class TupleBatch:
    """Some tuples; `at` are their places among all those an expression is computed for."""

    read: Callable[[str], tuple[pa.Array, Type]]
    rows: int
    functions: Mapping[str, PythonFunction]
    failures: TupleFailures
    at: Indices | None = None
    read_vectors: dict[str, Vector] = field(default_factory=dict)

    def vector(self, name: str) -> Vector:
        """A field's values, one for each tuple."""
        if name not in self.read_vectors:
            self.read_vectors[name] = from_arrow(*self.read(name))
        return self.read_vectors[name]

    def take(self, at: Indices) -> TupleBatch:
        """Only the tuples at these places."""
        if len(at) == self.rows:
            return self

        def read(name: str) -> tuple[pa.Array, Type]:
            array, type = self.read(name)
            return array.take(pa.array(at)), type

        own = at if self.at is None else self.at[at]
        return TupleBatch(read, len(at), self.functions, self.failures, own)

    def fail(self, row: int, reason: str) -> None:
        """Say that a tuple cannot be computed."""
        at = row if self.at is None else self.at[row]
        self.failures.add(np.array([at]), reason)

    def python(self, vector: Vector) -> list[Any]:
        """A vector's value for each tuple; a tuple with one that Python lacks fails.

        Python's dates end with the year 9999.
        """
        spread = vector.spread(self.rows)
        try:
            return spread.python()
        except (ValueError, OverflowError):
            array, found = spread.arrow(), []
            for row in range(self.rows):
                try:
                    found += plain(array.slice(row, 1), vector.type)
                except (ValueError, OverflowError) as error:
                    found.append(None)
                    self.fail(row, described(error))
            return found

    def each(self, compute: Callable[..., Any], *values: list[Any]) -> list[Any]:
        """What a function gives for each tuple; NULL where it fails."""
        try:
            return list(map(compute, *values))
        except Exception:
            found: list[Any] = []
            for row, arguments in enumerate(zip(*values, strict=True)):
                try:
                    found.append(compute(*arguments))
                except Exception as error:
                    found.append(None)
                    self.fail(row, described(error))
            return found
