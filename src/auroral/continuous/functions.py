"""Python functions that queries call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from auroral.network.types import Type


@dataclass(frozen=True)
class PythonFunction:
    """A function of Arrow arrays, one for each argument, that gives an Arrow array.

    What it returns is of type `returns`, one value for each tuple.
    """

    name: str
    udf: Callable[..., Any]
    returns: Type
