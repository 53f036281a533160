"""Which superboxes a pause keeps from starting (pure), and what is paused now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from auroral.scheduling.superboxes import Superbox

LASTING = ""
"""Stands for what a superbox serves besides applications: kept history, and tables it changes."""


def served_applications(
    superboxes: Sequence[Superbox], ends: Iterable[tuple[str, str]]
) -> dict[str, frozenset[str]]:
    """The applications that each superbox serves; `ends` are applications and their superboxes.

    `superboxes` are in flow order.

    >>> near = Superbox("near", ("reports",), ("near",), ("near",))
    >>> crowd = Superbox("crowd", ("near",), ("crowd",), ("crowd",), "crowd")
    >>> served = served_applications([near, crowd], [("all", "near"), ("alerts", "crowd")])
    >>> sorted(served["near"]), sorted(served["crowd"])
    (['alerts', 'all'], ['alerts'])
    """
    found: dict[str, set[str]] = {superbox.name: set() for superbox in superboxes}
    for application, writer in ends:
        if writer in found:
            found[writer].add(application)
    readers: dict[str, list[str]] = {}
    for superbox in superboxes:
        for source in superbox.sources:
            readers.setdefault(source, []).append(superbox.name)
    for superbox in reversed(superboxes):
        for arc in superbox.terminals:
            for reader in readers.get(arc, ()):
                found[superbox.name] |= found[reader]
        if superbox.tables:
            found[superbox.name].add(LASTING)
    return {name: frozenset(served) for name, served in found.items()}


def held_superboxes(
    served: Mapping[str, frozenset[str]], applications: Collection[str], *, everything: bool
) -> frozenset[str]:
    """The superboxes that may not start: all, or those that serve only paused applications.

    >>> served = {"near": frozenset({"alerts", "all"}), "crowd": frozenset({"alerts"})}
    >>> sorted(held_superboxes(served, {"alerts"}, everything=False))
    ['crowd']
    """
    if everything:
        return frozenset(served)
    paused = frozenset(applications)
    return frozenset(name for name, those in served.items() if those and those <= paused)


@dataclass(frozen=True)
class PauseState:
    """What is paused: everything, some applications, or nothing."""

    everything: bool = False
    applications: frozenset[str] = frozenset()
    until: int | None = None
    """After a breakpoint was hit, everything before this moment is still processed."""

    @property
    def is_paused(self) -> bool:
        return self.everything or bool(self.applications)

    def pause(self, application: str | None) -> PauseState:
        """Also pause one application, or everything."""
        if application is None:
            return replace(self, everything=True, until=None)
        return replace(self, applications=self.applications | {application})

    def resume(self, application: str | None, every: Collection[str]) -> PauseState:
        """Go on with one application, or with everything; `every` are all that there are.

        >>> PauseState().pause(None).resume("alerts", ["alerts", "all"])
        PauseState(everything=False, applications=frozenset({'all'}), until=None)
        """
        if application is None:
            return PauseState()
        paused = frozenset(every) if self.everything else self.applications
        return PauseState(applications=paused - {application})

    def hit(self, moment: int) -> PauseState:
        """A breakpoint was hit: nothing from a moment on is processed."""
        return replace(self, everything=True, until=moment)

    def stopped(self) -> PauseState:
        """Process nothing more, also of what came before a breakpoint."""
        return replace(self, until=None)

    def paused_applications(self, every: Collection[str]) -> list[str]:
        """All applications that are paused."""
        return sorted(every if self.everything else self.applications.intersection(every))
