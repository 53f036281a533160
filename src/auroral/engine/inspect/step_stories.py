"""What steps tell in the stories of boxes, outputs and queries; also when superboxes take turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from auroral.engine.inspect.stories import DecisionLog
from auroral.engine.runtime.arrival_times import ArrivalTimes
from auroral.engine.runtime.passed_over import LEAST_WAIT_S
from auroral.engine.runtime.stepping import CommittedStep
from auroral.scheduling.superboxes import Superbox

_REMEMBERED = 64
"""Of so many steps it is known when they ran."""
_MOST_OUTPUTS = 100
"""A superbox tells its decisions in the stories of at most so many outputs that others write."""

Concerned = Mapping[str, tuple[str, ...]]
"""By superbox, the names whose stories its decisions belong to."""


def concerned_names(
    superboxes: Sequence[Superbox],
    outputs: Mapping[str, str],
    owner: Callable[[str], str] = lambda _box: "",
) -> Concerned:
    """For each superbox: itself, its boxes, their queries, and the outputs that it leads to.

    `superboxes` are in flow order, `outputs` are by the arcs that they give, and `owner` tells the
    query of a box.

    >>> far = Superbox("far", ("s",), ("far",), ("far",))
    >>> asked = Superbox("hot#1", ("far",), ("hot#1", "hot#2"), ("hot#2",))
    >>> outputs = {"alerts": "far", "hot": "hot#2"}
    >>> concerned_names([far, asked], outputs, lambda box: "hot" if "#" in box else "")
    {'far': ('far', 'alerts', 'hot'), 'hot#1': ('hot#1', 'hot#2', 'hot')}
    """
    given: dict[str, list[str]] = {}
    for output, arc in outputs.items():
        given.setdefault(arc, []).append(output)
    behind: dict[str, dict[str, None]] = {}
    """By arc, the outputs that the superboxes lead to that read it."""
    found: dict[str, tuple[str, ...]] = {}
    for superbox in reversed(superboxes):
        own = [name for arc in superbox.terminals for name in given.get(arc, ())]
        others = [name for arc in superbox.terminals for name in behind.get(arc, ())]
        leads = dict.fromkeys([*own, *others[:_MOST_OUTPUTS]])
        for source in superbox.sources:
            behind.setdefault(source, {}).update(leads)
        queries = filter(None, map(owner, superbox.boxes))
        names = dict.fromkeys([superbox.name, *superbox.boxes, *queries, *leads])
        found[superbox.name] = tuple(names)
    return {superbox.name: found[superbox.name] for superbox in superboxes}


@dataclass(frozen=True)
class _Turn:
    superbox: str
    began_s: float
    ended_s: float


class StepStories:
    """Tells who ran and who waited while no scheduler decides, and who was halted.

    It observes steps in the thread that commits them. A superbox has waited from the arrival of its
    oldest tuple, or from the end of its own latest step, if others ran until its step began.
    """

    def __init__(
        self,
        concerned: Concerned,
        log: DecisionLog,
        times: ArrivalTimes,
        in_turn: Callable[[], bool],
        why: str = "in turn",
    ):
        """While superboxes are `in_turn`, steps are told, and `why` they ran."""
        self._concerned = concerned
        self._log = log
        self._times = times
        self._in_turn = in_turn
        self._why = why
        self._turns: deque[_Turn] = deque(maxlen=_REMEMBERED)
        """The latest steps, by the time at which they ended."""
        self._ended: dict[str, float] = {}

    def committed(self, step: CommittedStep) -> None:
        """A step was committed."""
        train, name = step.train, step.train.superbox.name
        if not train.superbox.boxes or not self._in_turn():
            return
        held = [s.first for segments in train.segments.values() for s in segments if s.rows]
        if not held:
            return  # moments that brought nothing
        ended_s = self._times.now_s()
        began_s = ended_s - step.seconds
        arrived_s = self._times.at(max(min(held), train.first))
        since_s = max(arrived_s, self._ended.get(name, arrived_s))
        about = self._concerned[name]
        other = self._running(name, since_s, began_s)
        if other is not None and began_s - since_s >= LEAST_WAIT_S:
            why = f"waited {began_s - since_s:.2g} s: it was the turn of {other}"
            self._log.note(about, "waited", why, same="passed over")
        self._log.note(about, "ran", self._why)
        self._turns.append(_Turn(name, began_s, ended_s))
        self._ended[name] = ended_s

    def _running(self, name: str, since_s: float, until_s: float) -> str | None:
        """Another superbox that ran in a time; the latest one."""
        for turn in reversed(self._turns):
            if turn.ended_s <= since_s:
                return None
            if turn.superbox != name and turn.began_s < until_s:
                return turn.superbox
        return None

    def halted(self, superbox: str, why: str) -> None:
        """A superbox does nothing more until the next start."""
        self._log.note(self._concerned.get(superbox, (superbox,)), "failed", why)
