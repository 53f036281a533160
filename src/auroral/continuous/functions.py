"""Python functions that queries call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auroral.network.function import load_named
from auroral.network.types import Type


@dataclass(frozen=True)
class PythonFunction:
    """A function of Arrow arrays, one for each argument, that gives an Arrow array.

    What it returns is of type `returns`, one value for each tuple.
    """

    name: str
    udf: Callable[..., Any]
    returns: Type


@dataclass(frozen=True)
class Named:
    """A function by its name, imported where it is called: workers have other module paths."""

    name: str
    directory: Path | None

    def __call__(self, *arrays: Any) -> Any:
        return load_named(self.name, self.directory)(*arrays)
