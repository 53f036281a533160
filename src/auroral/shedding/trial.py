"""Forward trial: which values of a field upstream give unwanted values downstream [1 §4.5] (pure).

Where a box has no inverse function, an interval on a field before it is tried: a sample of tuples
is sent through the boxes without those in the interval, and what is missing at the output is
compared with what was to be dropped. The best candidate is refined by bisection of its bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from auroral.shedding.drops import DropInterval

Row = Mapping[str, Any]
RunSample = Callable[[Sequence[Row]], Sequence[float | None]]
"""The values that an output has of some tuples upstream."""
Evaluate = Callable[[DropInterval], "TrialOutcome"]

_PARTS = 8
"""Into how many parts of equal count a sample is cut for the first candidates."""
_ROUNDS = 10
_LEAST_SCORE = 0.6


@dataclass(frozen=True)
class TrialOutcome:
    """What an interval upstream does to an output."""

    hit: float
    """The share of the values that were to be dropped that is dropped."""
    harm: float
    """The share of the other values that is dropped as well."""

    @property
    def score(self) -> float:
        """1 is perfect; 0 is no better than chance."""
        return self.hit - self.harm


def trial(
    candidates: Sequence[DropInterval],
    evaluate: Evaluate,
    *,
    rounds: int = _ROUNDS,
    least_score: float = _LEAST_SCORE,
) -> DropInterval | None:
    """The interval that does best, its bounds refined by bisection; None if none does well.

    >>> def squares(interval: DropInterval) -> TrialOutcome:
    ...     dropped = [x for x in range(100) if interval.low <= x < interval.high]
    ...     hit = sum(x * x < 2500 for x in dropped) / 50
    ...     return TrialOutcome(hit, sum(x * x >= 2500 for x in dropped) / 50)
    >>> trial([DropInterval("x", 0, 30), DropInterval("x", 30, 100)], squares)
    DropInterval(field='x', low=0, high=49.6875)
    """
    best: tuple[float, DropInterval] | None = None
    for candidate in candidates:
        score = evaluate(candidate).score
        if best is None or score > best[0]:
            best = score, candidate
    if best is None:
        return None
    low, high = best[1].low, best[1].high
    step = (high - low) if low is not None and high is not None else 1.0
    for _ in range(rounds):
        for moved in _moved(best[1], step):
            score = evaluate(moved).score
            if score > best[0]:
                best = score, moved
        step /= 2
    return best[1] if best[0] >= least_score else None


def _moved(interval: DropInterval, step: float) -> list[DropInterval]:
    """The interval with one of its bounds a step further in or out."""
    low, high = interval.low, interval.high
    found = []
    for way in (-step, step):
        if low is not None and (high is None or low + way < high):
            found.append(replace(interval, low=low + way))
        if high is not None and (low is None or high + way > low):
            found.append(replace(interval, high=high + way))
    return found


def candidate_intervals(
    rows: Sequence[Row], fields: Sequence[str], parts: int = _PARTS
) -> list[DropInterval]:
    """Ranges of each field that hold one or more parts of equal count of a sample."""
    found = []
    for name in fields:
        values = sorted(float(row[name]) for row in rows if _is_number(row[name]))
        if not values:
            continue
        edges = [values[len(values) * part // parts] for part in range(parts)]
        edges = list(dict.fromkeys([*edges, math.nextafter(values[-1], math.inf)]))
        found += [
            DropInterval(name, low, high)
            for at, low in enumerate(edges)
            for high in edges[at + 1 :]
            if (low, high) != (edges[0], edges[-1])
        ]
    return found


def evaluator_on(
    rows: Sequence[Row], run: RunSample, low: float | None, high: float | None
) -> Evaluate:
    """Tries intervals on a sample: values within `low <= value < high` are to be dropped."""
    whole = Counter(value for value in run(rows) if value is not None)
    target = {value for value in whole if _is_within(value, low, high)}
    wanted = sum(whole[value] for value in target)
    rest = sum(whole.values()) - wanted

    def evaluate(interval: DropInterval) -> TrialOutcome:
        kept = [row for row in rows if not _is_in(row, interval)]
        missing = whole - Counter(value for value in run(kept) if value is not None)
        hit = sum(missing[value] for value in target)
        harm = sum(missing.values()) - hit
        return TrialOutcome(hit / wanted if wanted else 0.0, harm / rest if rest else 0.0)

    return evaluate


class TriedField:
    """How an output's values are told on an arc, found by trial for each interval."""

    def __init__(self, field: str, rows: Sequence[Row], run: RunSample):
        self.field = field
        self.selective = False
        self._rows = rows
        self._run = run
        self._candidates = candidate_intervals(rows, [field])
        self._found: dict[tuple[float | None, float | None], DropInterval] = {}

    def interval(self, low: float | None, high: float | None) -> DropInterval:
        """Values of the field that give values within `low <= value < high`; empty if none do."""
        if (low, high) not in self._found:
            evaluate = evaluator_on(self._rows, self._run, low, high)
            found = trial(self._candidates, evaluate)
            self._found[low, high] = found or DropInterval(self.field, math.inf, math.inf)
        return self._found[low, high]


def tried_field(
    rows: Sequence[Row], fields: Sequence[str], run: RunSample, low: float, high: float
) -> TriedField | None:
    """The field of an arc by which values downstream can be told, found on one interval."""
    evaluate = evaluator_on(rows, run, low, high)
    best = trial(candidate_intervals(rows, fields), evaluate)
    return None if best is None else TriedField(best.field, rows, run)


def _is_in(row: Row, interval: DropInterval) -> bool:
    value = row[interval.field]
    return _is_number(value) and _is_within(float(value), interval.low, interval.high)


def _is_within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value < high)


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") and float(value) == float(value)
