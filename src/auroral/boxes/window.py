"""Windows over the values of an ordered attribute."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any, Literal

from pydantic import StrictFloat, StrictInt, StrictStr

from auroral.errors import NetworkError
from auroral.network.declarations import DAY_US, Declaration, duration_us
from auroral.network.types import FRACTIONAL, Type
from auroral.progress.durations import LONGEST

_MOST = {"decimal": 10**38, "float": 10**38, "double": 10**300}
"""What can be added to values of a type that has more than 64 bits of room."""
_EXACT = Context(prec=76)
Length = StrictInt | StrictFloat | StrictStr
Seconds = StrictInt | StrictFloat


class Window(Declaration):
    """Window a holds tuples with a <= A < a + size; windows start `advance` apart [1 §5.2.2.2].

    `advance` may be a predicate: each tuple that satisfies it opens a new window.
    """

    size: Length | None = None
    advance: Length | None = None
    align: Literal["first"] | None = None
    timeout: Seconds | None = None

    def model_post_init(self, _context: Any) -> None:
        require_timeout(self.timeout)


def require_timeout(timeout: Seconds | None) -> None:
    """Check that a timeout, if there is one, is positive and not too long."""
    if timeout is None:
        return
    if timeout <= 0:
        raise NetworkError(
            "BAD_WINDOW", f"expected more than 0 seconds, found {timeout}", where="key timeout"
        )
    if timeout * 1_000_000 > LONGEST:
        raise NetworkError("BAD_WINDOW", f"{timeout} is too long", where="key timeout")


def timeout_us(timeout: Seconds | None) -> int | None:
    """A timeout in µs, the unit of the clock."""
    return None if timeout is None else round(timeout * 1_000_000)


def in_marks(length: Length, on: Type) -> int | float:
    """A length in the units of marks: µs, days, the least digit of a decimal, or the number.

    >>> in_marks("1 min", Type("timestamp")), in_marks(0.5, Type("decimal", 8, 2))
    (60000000, 50)
    >>> in_marks("-2 days", Type("date"))
    -2
    """
    amount = _amount("length", length, on)
    if on.name == "decimal":
        return int(Decimal(str(amount)).scaleb(on.scale, _EXACT))
    return float(amount) if on.name in FRACTIONAL else int(amount)


def require_length(
    key: str, length: Length, on: Type, *, zero: bool = False, negative: bool = False
) -> None:
    """Check that a length is positive, or what else is allowed, in the attribute's units."""
    amount = _amount(key, length, on)
    if not negative and (amount < 0 or (amount == 0 and not zero)):
        wanted = "0 or more" if zero else "more than 0"
        raise _bad(key, wanted, length)
    most = _MOST.get(on.name, LONGEST)
    if abs(amount) > most:
        raise _bad(key, f"at most {most:.0e} over {on}", length)
    if (on.is_integral or on.name == "date") and amount != int(amount):
        raise _bad(key, "whole days" if on.name == "date" else f"a whole number over {on}", length)
    if on.name == "decimal" and _EXACT.remainder(Decimal(str(amount)).scaleb(on.scale, _EXACT), 1):
        raise _bad(key, f"at most {on.scale} decimal places over {on}", length)


def is_predicate(advance: Length) -> bool:
    """Whether `advance` is a predicate rather than a length."""
    if not isinstance(advance, str):
        return False
    try:
        duration_us(advance, "window.advance")
    except NetworkError:
        return True
    return False


def _amount(key: str, length: Length, on: Type) -> float:
    timely = on.name in ("timestamp", "timestamp_ntz")
    if isinstance(length, str):
        if not timely and on.name != "date":
            raise _bad(key, f"a number over {on}", length)
        text = length.strip()
        sign = -1 if text.startswith("-") else 1
        micros = sign * duration_us(text[1:] if sign < 0 else text, key)
        return micros if timely else micros / DAY_US
    if timely:
        raise _bad(key, f"text such as '10 minutes' over a {on}", length)
    return length


def _bad(key: str, expected: str, found: Length) -> NetworkError:
    return NetworkError("BAD_WINDOW", f"expected {expected}, found {found!r}", where=f"key {key}")
