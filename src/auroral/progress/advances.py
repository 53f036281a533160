"""How many advances a window is long, where lengths are doubles."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

FARTHEST = 2.0**49
"""Windows are numbered; beyond this many advances from zero doubles do not tell them apart.

Below it the rounding errors of a start, also one counted from a first tuple, and of the way back
from a start to its number add up to less than half an advance.
"""
ROUNDING = 2.0**-51
"""More than the relative error of a few additions of doubles."""


def advances_in(size: float, advance: float) -> int | None:
    """How many advances a size is, if a whole number n: window k then ends where k + n starts.

    Lengths are what their shortest decimal texts say, so that 0.3 is three times 0.1. A size that
    equals n * advance in double arithmetic counts, too.

    >>> advances_in(0.3, 0.1), advances_in(1.0, 1 / 3), advances_in(0.25, 0.1)
    (3, 3, None)
    """
    ratio = Fraction(Decimal(repr(float(size)))) / Fraction(Decimal(repr(float(advance))))
    nearest = round(ratio)
    exact = ratio == nearest or nearest * float(advance) == size
    return nearest if exact and 0 < nearest < FARTHEST else None
