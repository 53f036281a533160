"""What the optimiser knows of boxes: seconds for a tuple, and how many tuples come out (pure).

Estimates follow the network faster than the costs in the catalog do: a call counts seven tenths of
what the next one counts, so about the latest three decide. A call in which clearly more or fewer
tuples come out than is to be expected makes all before it count nothing for the selectivity: a
filter that costs next to nothing is worth its place as long as it is thought to drop something.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

from auroral.boxes import Filter, Join, Map
from auroral.network.box import Box
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Call, Lambda, Node, walk

_KEPT = 0.7
_MOST_DEVIATIONS = 4.0
"""Chance alone has more or fewer tuples come out, by so many standard deviations at most."""
_LEAST_S = 1e-9
"""No box is faster than this: ratios stay finite."""
PYTHON_WEIGHT = 20.0
PATTERN_WEIGHT = 5.0
JOIN_WEIGHT = 15.0
"""Keeping a tuple and looking for its partners, in comparisons."""
_PATTERNS = frozenset(
    ("rlike", "regexp", "regexp_like", "regexp_replace", "regexp_extract", "like", "ilike", "split")
)
ASSUMED_S = 1e-7
"""Seconds for a tuple of a box of weight 1 that was never measured."""
ASSUMED_SELECTIVITY = 0.5


@dataclass(frozen=True)
class Estimate:
    """c and s of a box [1 §3.1].

    >>> Estimate(0.001, 0.25).ratio
    750.0
    """

    cost_s: float
    selectivity: float

    @property
    def ratio(self) -> float:
        """(1 − s) / c: how many tuples a second of it saves the boxes behind."""
        return (1 - self.selectivity) / max(self.cost_s, _LEAST_S)

    def __str__(self) -> str:
        return f"c = {self.cost_s * 1e6:.3g} µs, s = {self.selectivity:.3g}"


@dataclass(frozen=True)
class Measured:
    """Sums over the latest calls of a box, older ones counting less.

    >>> steady = Measured().after(100, 20, 25.0).after(100, 20, 25.0)
    >>> steady.estimate()
    Estimate(cost_s=0.25, selectivity=0.2)
    >>> steady.after(100, 90, 25.0).estimate()
    Estimate(cost_s=0.25, selectivity=0.9)
    """

    calls: int = 0
    tuples_in: float = 0.0
    tuples_out: float = 0.0
    counted_in: float = 0.0
    """Tuples of those calls of which is known how many came out."""
    seconds: float = 0.0

    def after(self, tuples_in: int, tuples_out: int | None, seconds: float) -> Measured:
        """What is known after one more call."""
        if not tuples_in:
            return self
        out, counted_in = self.tuples_out, self.counted_in
        if tuples_out is not None:
            kept = _KEPT if self._expects(tuples_in, tuples_out) else 0.0
            out, counted_in = out * kept + tuples_out, counted_in * kept + tuples_in
        return Measured(
            self.calls + 1,
            self.tuples_in * _KEPT + tuples_in,
            out,
            counted_in,
            self.seconds * _KEPT + seconds,
        )

    def _expects(self, tuples_in: int, tuples_out: int) -> bool:
        """Whether chance explains how many tuples came out, if the selectivity is as before."""
        if not self.counted_in:
            return True
        known = self.tuples_out / self.counted_in
        share = (self.tuples_out + 1) / (self.counted_in + 2)  # nothing is known for certain
        spread = share * (1 - share) if share < 1 else share
        variance = tuples_in * spread * (1 + tuples_in / self.counted_in)
        return abs(tuples_out - known * tuples_in) <= _MOST_DEVIATIONS * sqrt(variance) + 1

    def estimate(self, least_calls: int = 1) -> Estimate | None:
        """Cost and selectivity; None as long as too few calls were measured."""
        if self.calls < least_calls or not self.counted_in:
            return None
        return Estimate(self.seconds / self.tuples_in, self.tuples_out / self.counted_in)


def weight(box: Box, calls_functions: bool) -> float:
    """How much longer a box is expected to take for a tuple than a box that only compares.

    It divides among fused boxes what was not measured for each. Python functions are measured, but
    handing tuples to Python and back is not.
    """
    if calls_functions:
        return PYTHON_WEIGHT
    texts: Iterable[str] = ()
    if isinstance(box, Filter):
        texts = box.predicates.values()
    elif isinstance(box, Map):
        texts = box.texts.values()
    elif isinstance(box, Join):
        return JOIN_WEIGHT
    return 1.0 + PATTERN_WEIGHT * sum(_heavy(text) for text in texts)


def assumed(box: Box, calls_functions: bool) -> Estimate:
    """The estimate of a box before anything was measured."""
    selectivity = ASSUMED_SELECTIVITY if isinstance(box, Filter) else 1.0
    return Estimate(ASSUMED_S * weight(box, calls_functions), selectivity)


@lru_cache(4_096)
def _heavy(text: str) -> int:
    """How many patterns and functions of collections an expression has."""
    try:
        nodes: list[Node] = list(walk(parse(text)))
    except RecursionError:
        return 1
    return sum(
        isinstance(node, Lambda) or (isinstance(node, Call) and node.name in _PATTERNS)
        for node in nodes
    )
