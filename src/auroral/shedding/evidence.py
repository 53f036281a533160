"""What is observed of a load: whether work piles up, and how much the machine really does (pure).

Costs of boxes are estimates: they contain waiting for other steps, compilation, the cost of calls
that trains of another size would share. So a predicted load says where tuples are expensive, but
not whether there are too many of them. That is decided by what waits, and by how much was done
while something waited.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

_LASTING = 2
"""For how many periods in a row the oldest tuple must wait for too long."""
_GROWING = 3
"""Over how many periods in a row queues must grow."""
_GROWN = 1.1
"""By which factor at least, all of these periods together."""
_RECOVERY = 4
"""What waits is no evidence if it is expected to be within its limit in so many periods."""
_LEAST_PERIODS = 4
"""For so many periods something must wait before they tell how much the machine does."""
_WINDOW_PERIODS = 8
_WINDOW_STEPS = 4.0
"""Work is counted over so many periods, or over so many usual steps if that is longer."""


@dataclass(frozen=True)
class WaitingWork:
    """What waits at the end of a period."""

    work: float
    """Seconds of work, as far as costs are known."""
    oldest_s: float
    """How long the oldest tuple has waited."""
    excess: float
    """How long tuples wait as a multiple of what outputs behind them can bear, at worst."""
    outside: float = 0.0
    """The share of outputs that are outside their good zone."""

    @property
    def too_much(self) -> float:
        """The work that would have to be gone for nothing to wait for too long."""
        return self.work * max(1 - 1 / self.excess, 0.0) if self.excess else 0.0


class OverloadEvidence:
    """Tells whether work piles up, period by period.

    >>> evidence = OverloadEvidence()
    >>> for oldest_s in (0.2, 0.8, 1.2, 1.7):
    ...     evidence.note(WaitingWork(oldest_s, oldest_s, oldest_s / 1.0))
    ...     print(evidence.found)
    None
    None
    None
    the oldest tuple has waited for 1.7 s
    """

    def __init__(self) -> None:
        self._seen: deque[WaitingWork] = deque(maxlen=_GROWING + 1)

    def note(self, seen: WaitingWork) -> None:
        """A period has ended."""
        self._seen.append(seen)

    def forget(self) -> None:
        """Begin anew."""
        self._seen.clear()

    @property
    def found(self) -> str | None:
        """Why work is taken to pile up, in words; None if it does not."""
        if not self._seen or self._recovers:
            return None
        last, lately = self._seen[-1], list(self._seen)[-_LASTING:]
        if len(lately) == _LASTING and all(one.excess >= 1 for one in lately):
            return f"the oldest tuple has waited for {last.oldest_s:.2g} s"
        if not self._grows:
            return None
        if last.excess >= 0.5:
            return f"queues have grown for {_GROWING} periods"
        if last.excess >= 0.25 and all(one.outside > 0 for one in lately):
            return "outputs have left their good zone and queues grow"
        return None

    @property
    def is_late(self) -> bool:
        """Whether tuples wait for longer than outputs can bear, now."""
        return bool(self._seen) and self._seen[-1].excess >= 1 and not self._recovers

    @property
    def is_quiet(self) -> bool:
        """Whether what waits is far from being too late."""
        return not self._seen or self._seen[-1].excess < 0.5

    @property
    def _grows(self) -> bool:
        works = [one.work for one in self._seen]
        return (
            len(works) == _GROWING + 1
            and all(after > before for before, after in pairwise(works))
            and works[-1] > works[0] * _GROWN
        )

    @property
    def _recovers(self) -> bool:
        """Whether queues get shorter so fast that nothing will be late soon."""
        first, last = self._seen[0], self._seen[-1]
        periods = len(self._seen) - 1
        falls = (first.work - last.work) / periods if periods else 0.0
        return falls > 0 and last.too_much <= falls * _RECOVERY


@dataclass(frozen=True)
class _WorkedPeriod:
    processed: Mapping[str, float]
    seconds: float


class ObservedCapacity:
    """How much work the machine does in a second, by what it did while something waited.

    Work is what boxes are expected to need for their tuples, so that it can be compared with the
    expected load, however wrong the expectation is: `costs` are given anew with each question.
    Until enough was seen it is the `nominal` capacity.

    >>> capacity = ObservedCapacity(1.6)
    >>> for _ in range(4):
    ...     capacity.note({"far": 3000.0}, 0.5, waiting=True, step_s=0.2)
    >>> capacity.measure()
    True
    >>> capacity.at({"far": 0.001})
    6.0
    """

    def __init__(self, nominal: float):
        self.nominal = nominal
        """What it is taken for until it was measured."""
        self._settled = 0.0
        """What it was before boxes went that had a part in it."""
        self._run: deque[_WorkedPeriod] = deque()
        """The latest periods in a row at whose ends something waited."""
        self._basis: tuple[_WorkedPeriod, ...] = ()
        """The periods that tell the capacity."""
        self._factor = 1.0
        self._most = _WINDOW_PERIODS

    def note(
        self,
        processed: Mapping[str, float],
        period_s: float,
        *,
        waiting: bool,
        step_s: float,
    ) -> None:
        """In a period boxes have processed so many tuples each; at its end something waited."""
        if not waiting:
            self._run.clear()
            return
        self._run.append(_WorkedPeriod(dict(processed), period_s))
        self._most = max(_WINDOW_PERIODS, round(_WINDOW_STEPS * step_s / period_s))
        while len(self._run) > self._most:
            self._run.popleft()

    def forget_run(self) -> None:
        """What was done lately does not tell how much the machine does."""
        self._run.clear()

    @property
    def is_measurable(self) -> bool:
        """Whether something has waited for long enough."""
        return len(self._run) >= _LEAST_PERIODS and bool(_between_ends(self._run))

    @property
    def is_known(self) -> bool:
        """Whether it was measured."""
        return bool(self._basis)

    def measure(self) -> bool:
        """Take what was done while something waits now for the capacity; False if too short."""
        if self.is_measurable:
            self._basis, self._factor = _between_ends(self._run), 1.0
            return True
        return False

    def measure_if_more(self, costs: Mapping[str, float]) -> None:
        """The same if more was done, for long, than the capacity is taken to be."""
        is_long = len(self._run) >= self._most
        if is_long and _work_per_s(_between_ends(self._run), costs) > self.at(costs):
            self.measure()

    @property
    def raised(self) -> float:
        """By which factor it is taken for larger than was measured."""
        return self._factor

    def raise_by(self, factor: float) -> None:
        """Take it for larger: all that arrives is processed at once, so there may be room."""
        self._factor *= factor

    def at(self, costs: Mapping[str, float]) -> float:
        """Seconds of work a second, if tuples cost this much by box."""
        found = _work_per_s(self._basis, costs) if self._basis else self._settled
        return (found or self.nominal) * self._factor

    def settle(self, costs: Mapping[str, float]) -> None:
        """Boxes go: what they did counts as it did with these costs, until more is measured."""
        if self._basis:
            self._settled, self._basis = _work_per_s(self._basis, costs), ()
        self._run.clear()


def _between_ends(run: Sequence[_WorkedPeriod]) -> tuple[_WorkedPeriod, ...]:
    """The periods after the first one in which steps ended up to the last such one.

    What a step does is counted when it ends, so a part of a step at either end would be wrong.
    """
    worked = [at for at, one in enumerate(run) if any(one.processed.values())]
    return tuple(run)[worked[0] + 1 : worked[-1] + 1] if worked else ()


def _work_per_s(periods: Sequence[_WorkedPeriod], costs: Mapping[str, float]) -> float:
    seconds = sum(one.seconds for one in periods)
    work = sum(n * costs.get(box, 0.0) for one in periods for box, n in one.processed.items())
    return work / seconds if seconds else 0.0
