"""What boxes cost: seconds of a call and of a tuple, and how many tuples come out (pure).

A call of a box over n tuples is taken to last `call_s + n × cost_s`. Both are estimated by least
squares in which older calls count less and less, from five sums that are small enough to be
committed with every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_KEPT = 0.97
"""What a call counts of what the one after it counts: about the latest thirty decide."""
_LEAST_SPREAD = 0.05
"""How different the sizes of trains must be (their deviation by their mean) to tell both apart."""


@dataclass(frozen=True)
class BoxCost:
    """What was measured of a box: cumulative counts, and sums in which older calls fade.

    >>> cost = BoxCost()
    >>> for tuples in (100, 300, 200):
    ...     cost = cost.after(tuples, tuples // 2, 0.05 + tuples * 0.001)
    >>> round(cost.call_s, 6), round(cost.cost_s, 6), cost.selectivity, cost.calls
    (0.05, 0.001, 0.5, 3)
    """

    calls: int = 0
    tuples_in: int = 0
    tuples_out: int = 0
    seconds: float = 0.0
    weight: float = 0.0
    recent_tuples: float = 0.0
    recent_seconds: float = 0.0
    recent_squares: float = 0.0
    recent_products: float = 0.0
    counted_in: float = 0.0
    """Tuples of those recent calls of which is known how many came out."""
    counted_out: float = 0.0

    def after(
        self, tuples_in: int, tuples_out: int | None, seconds: float, weight: float = 1.0
    ) -> BoxCost:
        """What is known after one more call; what came out may not have been counted.

        A call that took an unusual time, such as the first one of a plan, has less `weight`.
        """
        counted = tuples_out is not None
        kept = _KEPT**weight
        return BoxCost(
            self.calls + 1,
            self.tuples_in + tuples_in,
            self.tuples_out + (tuples_out or 0),
            self.seconds + seconds,
            self.weight * kept + weight,
            self.recent_tuples * kept + weight * tuples_in,
            self.recent_seconds * kept + weight * seconds,
            self.recent_squares * kept + weight * tuples_in * tuples_in,
            self.recent_products * kept + weight * tuples_in * seconds,
            self.counted_in * _KEPT + tuples_in if counted else self.counted_in,
            self.counted_out * _KEPT + (tuples_out or 0) if counted else self.counted_out,
        )

    @property
    def is_known(self) -> bool:
        """Whether a call was measured in which Spark has not compiled."""
        return self.weight >= 1.0

    @property
    def cost_s(self) -> float | None:
        """Seconds for one more tuple; None before the first tuple."""
        return self._line()[1]

    @property
    def call_s(self) -> float | None:
        """Seconds of a call, however few tuples it has; None before the first call.

        Zero until trains of different sizes were seen: all is taken for the cost of tuples then.
        Before the first call of full weight all is taken for the call: if tuples were thought to
        be dear because Spark compiled, a scheduler would not run the box again, and never learn.

        >>> first = BoxCost().after(10, 10, 2.0, weight=0.01)
        >>> first.call_s, first.cost_s
        (2.0, 0.0)
        """
        return self._line()[0]

    @property
    def selectivity(self) -> float | None:
        """How many tuples come out for each that goes in, lately; None before the first."""
        return self.counted_out / self.counted_in if self.counted_in else None

    def _line(self) -> tuple[float | None, float | None]:
        """Intercept and slope of the line, neither of them below zero."""
        if not self.calls:
            return None, None
        mean_s = self.recent_seconds / self.weight
        if not self.recent_tuples:
            return mean_s, None
        mean = self.recent_tuples / self.weight
        variance = self.recent_squares / self.weight - mean * mean
        if not self.is_known:
            return mean_s, 0.0
        if variance <= (_LEAST_SPREAD * mean) ** 2:
            return 0.0, mean_s / mean
        covariance = self.recent_products / self.weight - mean * mean_s
        slope = covariance / variance
        if slope <= 0:
            return mean_s, 0.0
        fixed = mean_s - slope * mean
        return (fixed, slope) if fixed >= 0 else (0.0, self.recent_products / self.recent_squares)


def attributed(
    seconds: float,
    tuples: Mapping[str, int],
    weights: Mapping[str, float] = MappingProxyType({}),
    measured: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, float]:
    """The seconds of a step, by box.

    A box gets what was `measured` of it; the rest is divided in proportion to the tuples that each
    box got, times its weight. What tasks have measured side by side may be more than the step
    took; it is scaled down then.

    >>> attributed(0.9, {"f": 200, "m": 100}), attributed(0.9, {"f": 0, "m": 0})
    ({'f': 0.6, 'm': 0.3}, {'f': 0.45, 'm': 0.45})
    >>> attributed(1.0, {"f": 100, "m": 100}, {"m": 3.0}, {"m": 0.5})
    {'f': 0.125, 'm': 0.875}
    """
    if not tuples:
        return {}
    own = {box: max(measured.get(box, 0.0), 0.0) for box in tuples}
    known = sum(own.values())
    if known > seconds:
        own = {box: spent * seconds / known for box, spent in own.items()}
    rest = max(seconds - known, 0.0)
    shares = {box: count * weights.get(box, 1.0) for box, count in tuples.items()}
    total = sum(shares.values())
    if not total:
        return {box: own[box] + rest / len(tuples) for box in tuples}
    return {box: own[box] + rest * share / total for box, share in shares.items()}
