"""Python functions that queries call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auroral.errors import NetworkError
from auroral.network.function import fresh, load_named
from auroral.network.types import Type


@dataclass(frozen=True)
class PythonFunction:
    """A function of Arrow arrays, one for each argument, that gives an Arrow array.

    What it returns is of type `returns`, one value for each tuple.
    """

    name: str
    udf: Callable[..., Any]
    returns: Type
    signature: inspect.Signature | None = None
    """How it may be called, if that is known."""

    def require(self, arguments: int) -> None:
        """Refuse a call that could only fail."""
        try:
            if self.signature is not None:
                self.signature.bind(*[None] * arguments)
        except TypeError as error:
            raise NetworkError(
                "WRONG_ARITY", f"{self.name} is called with {arguments} arguments: {error}"
            ) from None


@dataclass(frozen=True)
class Named:
    """A function by its name, imported where it is called: workers have other module paths."""

    name: str
    directory: Path | None

    def __call__(self, *arrays: Any) -> Any:
        return fresh(load_named(self.name, self.directory))(*arrays)
