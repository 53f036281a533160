"""How long a tuple is held for a partner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from auroral.boxes.window import Seconds, timeout_us
from auroral.reference.operator import Emission, Tuple


@dataclass(frozen=True)
class Patience:
    """A timeout, if there is one; the time of a tuple counts from when it reached the box.

    >>> Patience(2_000_000).meet(Tuple({}, reached_us=0), Tuple({}, reached_us=2_000_001))
    False
    """

    timeout_us: int | None

    @staticmethod
    def of(timeout: Seconds | None) -> Patience:
        return Patience(timeout_us(timeout))

    def meet(self, one: Tuple, other: Tuple) -> bool:
        """Whether the later of two finds the earlier still there."""
        return self.timeout_us is None or abs(one.reached_us - other.reached_us) <= self.timeout_us

    def over(self, clock_us: int | None) -> Callable[[Tuple], bool]:
        """Tells whether the clock exceeds a tuple's arrival by the timeout."""
        if self.timeout_us is None or clock_us is None:
            return lambda _: False
        earliest_us = clock_us - self.timeout_us
        return lambda held: held.reached_us < earliest_us


def timed_out(gone: Tuple) -> Emission:
    """A tuple that went because its time was over: it is counted, and leaves nowhere."""
    return Emission(None, gone, "timeout")
