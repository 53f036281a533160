"""What intervenes in the loop while somebody debugs or looks at tuples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from auroral.eddy.registered import NEVER
from auroral.engine.debug.breakpoints import BreakpointHit, Breakpoints
from auroral.engine.debug.pausing import (
    LASTING,
    PauseState,
    held_superboxes,
    served_applications,
)
from auroral.engine.debug.pins import PinnedSegment, pin
from auroral.engine.debug.places import PlaceFinder
from auroral.engine.debug.tracing import Tracer
from auroral.engine.inspect.followers import Followers
from auroral.engine.inspect.taps import Taps
from auroral.engine.results.views import View
from auroral.engine.runtime.stateful_step import StatefulStep
from auroral.engine.runtime.stepping import CommittedStep
from auroral.engine.runtime.train import Train
from auroral.engine.topology.execution import Execution
from auroral.ids import AttachmentId, EddyId
from auroral.storage import Change, Store


@dataclass(frozen=True)
class Permit:
    """What may run although it is paused, for one call of `step`."""

    superboxes: frozenset[str]
    limit: int = NEVER
    """Only moments before this one."""
    starts: int | None = None
    """So many steps; None: as many as it takes."""


_SAMPLER_OPEN_S = 3.0
"""For so long a tap stays open whose tuples only serve to time expressions."""


class DebugWatch:
    """Decides what may start, and shows what steps read and write to those who look.

    The loop's thread asks it, in rounds; others change it between rounds.
    """

    def __init__(self, store: Store, execution: Callable[[], Execution]):
        """`execution` gives the boxes that run now."""
        self._store = store
        self._execution = execution
        self._finder: PlaceFinder | None = None
        self._served: tuple[object, int, dict[str, frozenset[str]]] | None = None
        self._held: tuple[object, PauseState, frozenset[str]] | None = None
        self.pauses = PauseState()
        self.permit: Permit | None = None
        self.hit: BreakpointHit | None = None
        """Where a breakpoint has stopped the engine."""
        self.recovers_until = 0
        self.breakpoints = Breakpoints(store)
        self.tracer = Tracer(store)
        self.taps = Taps(store, self.refresh)
        self.followers = Followers(store, self._view_of, self.complete_before, self.refresh)
        self._pinned: dict[str, list[PinnedSegment]] = {}
        self.active = False
        """Whether the loop has to ask at all."""

    def refresh(self) -> None:
        """Find out whether somebody still debugs or looks."""
        debugging = self.pauses.is_paused or self.permit is not None or self.tracer.on
        looking = bool(self.taps) or bool(self.followers) or self.breakpoints.any_enabled
        self.active = debugging or looking

    @property
    def is_paused(self) -> bool:
        return self.pauses.is_paused

    @property
    def finder(self) -> PlaceFinder:
        """Finds arcs in the boxes that run now."""
        execution = self._execution()
        if self._finder is None or self._finder.execution is not execution:
            self._finder = PlaceFinder(execution)
        return self._finder

    def sampler(self) -> Callable[[str, int], pa.Table]:
        finder = self.finder
        return lambda arc, limit: self.taps.sample(finder, arc, limit, None, _SAMPLER_OPEN_S)

    # ── who serves whom ──

    def applications(self) -> list[str]:
        """What can be paused by itself: outputs, queries that no output reads, attached queries."""
        execution = self._execution()
        names = dict.fromkeys([*execution.plan.arcs, *self._shared()])
        return [*names, *execution.context.attachments.names]

    def _shared(self) -> dict[str, str]:
        """By output or query, the query that it is."""
        execution = self._execution()
        outputs = execution.plan.epoch.declared.network.outputs.items()
        found = {n: o.from_ for n, o in outputs if n not in execution.plan.arcs}
        readers, read = execution.outputs.readers, set(found.values())
        for query in execution.context.queries.catalogue.names():
            if query not in read and not readers.outputs_of(query):
                found.setdefault(query, query)
        return found

    def served(self) -> dict[str, frozenset[str]]:
        """The applications that each superbox serves."""
        execution = self._execution()
        changes = execution.context.queries.changes
        known = self._served
        if known is None or known[0] is not execution or known[1] != changes:
            found = served_applications(execution.superboxes, self._ends(execution))
            known = self._served = execution, changes, found
        return known[2]

    def _ends(self, execution: Execution) -> list[tuple[str, str]]:
        """Applications, and the superboxes that write what they get."""
        stepper = execution.stepper
        logs = [(name, arc) for name, arc in execution.plan.arcs.items()]
        logs += [(LASTING, point.arc) for point in execution.context.history.points.values()]
        eddies = {s.name: EddyId.parse(s.name) for s in execution.superboxes}
        found: list[tuple[str, str]] = []
        for name, query in self._shared().items():
            read = execution.context.queries.catalogue.arcs_of(query)
            serving = [n for n, eddy in eddies.items() if eddy and read and read <= {*eddy.arcs}]
            found += [(name, eddy) for eddy in serving]
            view = None if serving else execution.outputs.found(name)
            if view is not None:
                logs.append((name, view.log))
        writers = ((name, stepper.writer_of(log)) for name, log in logs)
        return found + [(name, writer.name) for name, writer in writers if writer is not None]

    def held(self) -> frozenset[str]:
        """The superboxes that a pause keeps from starting."""
        served, known = self.served(), self._held
        if known is None or known[0] is not served or known[1] != self.pauses:
            pauses = self.pauses
            found = held_superboxes(served, pauses.applications, everything=pauses.everything)
            known = self._held = served, pauses, found
        return known[2]

    def _is_held(self, superbox: str) -> bool:
        attached = AttachmentId.of(superbox)
        if attached is not None:
            return self.pauses.everything or attached.name in self.pauses.applications
        return superbox in self.held()

    # ── what may start ──

    def may_start(self, superbox: str) -> bool:
        if not self.pauses.is_paused or not self._is_held(superbox):
            return True
        permit = self.permit
        if permit is not None:
            return superbox in permit.superboxes and permit.starts != 0
        return self.pauses.until is not None

    def limit(self, superbox: str) -> int:
        if not self.pauses.is_paused or not self._is_held(superbox):
            return NEVER
        if self.permit is not None and superbox in self.permit.superboxes:
            return self.permit.limit
        return NEVER if self.pauses.until is None else self.pauses.until

    def admit(self, train: Train, *, recorded: bool) -> Train | None:
        name = train.superbox.name
        permit = self.permit
        if permit is not None and name in permit.superboxes and self._is_held(name):
            if permit.starts is not None:
                self.permit = replace(permit, starts=permit.starts - 1)
            return train
        stops = self.breakpoints.any_enabled and not recorded and AttachmentId.of(name) is None
        if not stops or train.first == train.last:
            return train
        hit = self.breakpoints.in_train(self.finder, train)
        if hit is None:
            return train
        if hit.moment > train.first:
            return _cut(train, hit.moment)
        self.stop_at(hit)
        return None

    def stop_at(self, hit: BreakpointHit) -> None:
        """A breakpoint was hit: pause, once everything before the tuple is processed.

        If one was hit at a later tuple just now, that one is to be hit again.
        """
        if self.hit is not None and hit.moment >= self.hit.moment:
            return
        if self.hit is not None:
            self.hit.taken_back()
        hit.taken()
        self.hit = hit
        self.change(self.pauses.hit(hit.moment))

    def change(self, pauses: PauseState) -> None:
        """Pause or go on from now on."""
        before, self.pauses = self.pauses, pauses
        execution = self._execution()
        if before.is_paused and not pauses.is_paused:
            self.recovers_until = self._store.next_moment
        stopped = None if pauses.everything else pauses.applications
        execution.context.quality.paused(stopped)
        self.refresh()

    # ── what steps read and write ──

    def committing(self, train: Train, change: Change) -> None:
        if self.taps:
            self.taps.committing(train, change)
        if self.followers:
            self.followers.committing(train, change)
        if self.tracer.on:
            self.tracer.committing(train, change)
        self._pinned = {}
        if self.breakpoints.any_enabled:
            finder = self.finder
            for segment in change.written:
                if self.breakpoints.watches(finder, segment.log):
                    pins = pin(self._store, [segment])
                    self._pinned.setdefault(segment.log, []).extend(pins)

    def committed(self, step: CommittedStep) -> None:
        if self.followers:
            self.followers.committed()
        if self.tracer.on:
            found = self._execution().steps.get(step.train.superbox.name)
            self.tracer.committed(step, found if isinstance(found, StatefulStep) else None)
        for log, pins in self._pinned.items():
            hit = self.breakpoints.in_change(self.finder, log, pins)
            if hit is not None and self.permit is None:
                self.stop_at(hit)
        self._pinned = {}

    def _view_of(self, output: str) -> View | None:
        return self._execution().outputs.found(output)

    def complete_before(self, log: str) -> int | None:
        """The moment before which a log is complete; None if no step writes it."""
        execution = self._execution()
        attached = execution.context.attachments.emitted_before(log)
        if attached is not None:
            return attached
        if execution.stepper.writer_of(log) is None:
            return None
        return execution.stepper.emitted_before(log)

    def close(self) -> None:
        """The engine ends."""
        self.followers.close()


def _cut(train: Train, last: int) -> Train:
    """The moments of a train before one."""
    segments = {
        source: tuple(segment for segment in held if segment.first < last)
        for source, held in train.segments.items()
    }
    return replace(train, last=last, segments=segments)
