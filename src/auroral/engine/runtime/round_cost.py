"""What the loop itself costs: deciding, recording and committing, which one thread does."""

from __future__ import annotations

_FADE = 0.99
"""A round counts so much of the one after it."""


class RoundCost:
    """Seconds of the loop for each step, lately; the work of the steps themselves is not in them.

    >>> cost = RoundCost()
    >>> cost.per_step_s is None
    True
    >>> for _ in range(100):
    ...     cost.note(0.002, 0)
    ...     cost.note(0.01, 2)
    >>> round(cost.per_step_s, 3)
    0.006
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._steps = 0.0

    def note(self, seconds: float, steps: int) -> None:
        """A round that did something has taken so long, and has committed so many steps."""
        self._seconds = _FADE * self._seconds + seconds
        self._steps = _FADE * self._steps + steps

    @property
    def per_step_s(self) -> float | None:
        """None before the first step."""
        return self._seconds / self._steps if self._steps else None
