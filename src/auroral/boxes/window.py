"""Windows over the values of an ordered attribute."""

from __future__ import annotations

from typing import Literal

from pydantic import StrictFloat, StrictInt, StrictStr

from auroral.errors import NetworkError
from auroral.network.declarations import Declaration
from auroral.network.types import Type
from auroral.progress.durations import parse_duration_us

Length = StrictInt | StrictFloat | StrictStr


class Window(Declaration):
    """Window a holds tuples with a <= A < a + size; windows start `advance` apart [1 §5.2.2.2].

    `advance` may be a predicate: each tuple that satisfies it opens a new window.
    """

    size: Length | None = None
    advance: Length | None = None
    align: Literal["first"] | None = None
    timeout: StrictInt | StrictFloat | None = None


def require_length(what: str, length: Length, on: Type) -> None:
    """Check that a length is positive and in the units of the attribute."""
    if on.name.startswith("timestamp"):
        if isinstance(length, str):
            if parse_duration_us(length) <= 0:
                raise NetworkError("BAD_WINDOW", f"{what} must be positive, found {length!r}")
            return
        raise NetworkError(
            "BAD_WINDOW", f"{what} over a timestamp is text such as '10 minutes', found {length}"
        )
    if isinstance(length, str):
        if on.name == "date" and parse_duration_us(length) >= 86_400_000_000:
            return
        raise NetworkError("BAD_WINDOW", f"{what} over {on} is a number, found {length!r}")
    if length <= 0:
        raise NetworkError("BAD_WINDOW", f"{what} must be positive, found {length}")
    if (on.is_integral or on.name == "date") and length != int(length):
        raise NetworkError("BAD_WINDOW", f"{what} over {on} is a whole number, found {length}")


def is_predicate(advance: Length, on: Type) -> bool:
    """Whether `advance` is a predicate rather than a length."""
    if not isinstance(advance, str):
        return False
    if on.name.startswith("timestamp") or on.name == "date":
        try:
            parse_duration_us(advance)
        except NetworkError:
            return True
        return False
    return True
