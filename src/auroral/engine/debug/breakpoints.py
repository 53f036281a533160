"""Breakpoints: which tuple of a train, or of what a step has written, is one to stop at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.engine.debug.conditions import Condition
from auroral.engine.debug.pins import PinnedSegment, together
from auroral.engine.debug.places import Place, PlaceFinder
from auroral.engine.results.batches import visible
from auroral.engine.runtime.train import Train, cut
from auroral.errors import AuroralError, UsageError, closest, list_existing
from auroral.storage import Store


@dataclass
class Breakpoint:
    """An arc and a condition; the engine stops before a tuple that satisfies it."""

    id: str
    arc: str
    condition: Condition | None
    enabled: bool = True
    hits: int = 0
    passed: int = -1
    """Up to this moment it does not stop any more."""

    def document(self) -> dict[str, Any]:
        text = None if self.condition is None else self.condition.text
        return {
            "id": self.id,
            "arc": self.arc,
            "condition": text,
            "enabled": self.enabled,
            "hits": self.hits,
        }


@dataclass(frozen=True)
class BreakpointHit:
    """The tuple at which a breakpoint stops."""

    breakpoint: Breakpoint
    moment: int
    row: Mapping[str, Any]
    at_us: int
    passed: int
    """Up to which moment the breakpoint did not stop before."""

    def taken(self) -> None:
        """The engine stops here, and not again at the same tuple."""
        self.breakpoint.hits += 1
        self.breakpoint.passed = max(self.breakpoint.passed, self.moment)

    def taken_back(self) -> None:
        """The engine stops at an earlier tuple: this one comes again."""
        self.breakpoint.hits -= 1
        self.breakpoint.passed = self.passed

    def document(self) -> dict[str, Any]:
        return {
            "breakpoint": self.breakpoint.id,
            "arc": self.breakpoint.arc,
            "moment": self.moment,
            "tuple": dict(self.row),
            "at_us": self.at_us,
        }


def _fitted(condition: str, finder: PlaceFinder, place: Place) -> Condition:
    """A condition over the fields that an arc has now."""
    return Condition(condition, place.fields, finder.execution.context.settings.executor.resolver)


@dataclass
class _Checkpoints:
    """Where the breakpoints of one execution are looked at."""

    finder: PlaceFinder
    trains: dict[str, list[tuple[Breakpoint, Place]]] = field(default_factory=dict)
    """By superbox: before it takes a train."""
    changes: dict[str, list[tuple[Breakpoint, Place]]] = field(default_factory=dict)
    """By log: when a step has written it, as nothing reads it."""


class Breakpoints:
    """All breakpoints; changed and asked in rounds, or between them."""

    def __init__(self, store: Store):
        self._store = store
        self._all: dict[str, Breakpoint] = {}
        self._number = 0
        self._checkpoints: _Checkpoints | None = None

    @property
    def any_enabled(self) -> bool:
        return any(one.enabled for one in self._all.values())

    def documents(self) -> list[dict[str, Any]]:
        return [one.document() for one in self._all.values()]

    def add(self, finder: PlaceFinder, arc: str, condition: str | None, enabled: bool) -> str:
        """Set a breakpoint; a condition that does not fit the arc is refused."""
        place = finder.find(arc, before=True)
        checked = None if condition is None else _fitted(condition, finder, place)
        self._number += 1
        id = f"b{self._number}"
        self._all[id] = Breakpoint(id, arc, checked, enabled)
        self._checkpoints = None
        return id

    def remove(self, id: str) -> None:
        self._require(id)
        del self._all[id]
        self._checkpoints = None

    def enable(self, id: str, enabled: bool) -> None:
        self._require(id).enabled = bool(enabled)

    def _require(self, id: str) -> Breakpoint:
        if not isinstance(id, str) or id not in self._all:
            raise UsageError(
                "UNKNOWN_BREAKPOINT",
                f"there is no breakpoint {id}; {list_existing(self._all)}",
                hint=closest(str(id), self._all),
            )
        return self._all[id]

    # ── looking for tuples ──

    def _looked_at(self, finder: PlaceFinder) -> _Checkpoints:
        known = self._checkpoints
        if known is None or known.finder is not finder:
            known = self._checkpoints = _Checkpoints(finder)
            for one in self._all.values():
                try:
                    place = finder.find(one.arc, before=True)
                    if one.condition is not None:
                        one.condition = _fitted(one.condition.text, finder, place)
                except AuroralError:
                    continue  # the network has the arc no more, or it has other fields
                self._place(known, one, place)
        return known

    def _place(self, known: _Checkpoints, one: Breakpoint, place: Place) -> None:
        execution = known.finder.execution
        readers = [
            superbox
            for superbox in execution.superboxes
            if not {*place.logs}.isdisjoint(superbox.sources)
        ]
        if place.path:
            own = {*place.path}
            origin = execution.checked.origin
            using = [s for s in readers if not own.isdisjoint(map(origin, s.boxes))]
            readers = using or readers  # nobody needs the arc: whoever takes its input stops
        if place.view is not None or not readers:
            for log in place.logs:
                known.changes.setdefault(log, []).append((one, place))
        else:
            for superbox in readers:
                known.trains.setdefault(superbox.name, []).append((one, place))

    def in_train(self, finder: PlaceFinder, train: Train) -> BreakpointHit | None:
        """The first tuple of a train at which a breakpoint stops."""
        found: BreakpointHit | None = None
        tables: dict[str, pa.Table] = {}
        for one, place in self._looked_at(finder).trains.get(train.superbox.name, ()):
            if one.enabled:
                for log in place.logs:
                    if log in train.segments and log not in tables:
                        tables[log] = self._rows(finder, log, train)
                given = {log: tables[log] for log in place.logs if log in tables}
                hit = self._first(finder, one, place, given)
                if hit is not None and (found is None or hit.moment < found.moment):
                    found = hit
        return found

    def watches(self, finder: PlaceFinder, log: str) -> bool:
        """Whether a breakpoint has to see what steps write to a log."""
        return log in self._looked_at(finder).changes

    def in_change(
        self, finder: PlaceFinder, log: str, pins: Sequence[PinnedSegment]
    ) -> BreakpointHit | None:
        """The first tuple that a step has written at which a breakpoint stops."""
        found: BreakpointHit | None = None
        for one, place in self._looked_at(finder).changes.get(log, ()):
            if one.enabled:
                parts = [pin.read() for pin in pins]
                if place.view is not None:
                    parts = [place.view.rows(part) for part in parts]
                table = together(parts, place.schema)
                hit = self._first(finder, one, place, {log: table}) if table.num_rows else None
                if hit is not None and (found is None or hit.moment < found.moment):
                    found = hit
                    last = int(table["_seq"].to_numpy().max())
                    one.passed = max(one.passed, last)  # these were processed already
        return found

    def _rows(self, finder: PlaceFinder, log: str, train: Train) -> pa.Table:
        held = [segment for segment in train.segments[log] if segment.file]
        parts = [cut(self._store.table(segment), train.first, train.last) for segment in held]
        return together(parts, finder.checked.arcs[log].schema.arrow())

    def _first(
        self, finder: PlaceFinder, one: Breakpoint, place: Place, given: Mapping[str, pa.Table]
    ) -> BreakpointHit | None:
        given = {log: table for log, table in given.items() if table.num_rows}
        if place.path:
            given = finder.preview.run(place.path, given)
            table = given.get(place.arc or "")
        else:
            table = next(iter(given.values()), None)
        if table is None or not table.num_rows:
            return None
        moments = table["_seq"].to_numpy()
        chosen = moments > one.passed
        if one.condition is not None and chosen.any():
            chosen = chosen & one.condition.holds(visible(table))
        if not chosen.any():
            return None
        at = int(np.flatnonzero(chosen)[np.argmin(moments[chosen])])
        row = visible(table.slice(at, 1)).to_pylist()[0]
        return BreakpointHit(one, int(moments[at]), row, table["_ts"][at].as_py(), one.passed)
