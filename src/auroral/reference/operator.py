"""What every reference box is: tuples in, emissions out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

Row = dict[str, Any]
Emission = tuple[str, Row]
"""A port (`""` is the arc named like the box) and the tuple that leaves on it."""


class Operator(Protocol):
    """One box at work. Only what arrives moves it, so its emissions are those of one moment."""

    def push(self, port: int, row: Row) -> Iterable[Emission]:
        """Take a tuple on the input of that number, and emit what it completes."""


class FunctionFailedError(Exception):
    """A Python function raised: the tuple is a dead letter, the others go on."""
