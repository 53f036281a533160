"""Marks at the inputs: what a stream's declaration makes of its arrivals.

A `SourceProgress` folds arrivals into a mark. It moves after each tuple, so the outcome does
not depend on how arrivals are cut into trains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from auroral.progress.lowwater import (
    GroupedLowWater,
    LowWater,
    Mark,
    Moments,
    Values,
    as_values,
    maximum,
)
from auroral.progress.origins import OriginMarks, OriginRows


@dataclass(frozen=True)
class StreamArrivals:
    """What one train brought on one stream; NULL and NaN values are left out before.

    `groups` gives the group of each tuple when progress is by group. Punctuations are
    (moment, value, group). `origins` says which source or partition each moment concerns; None
    if the stream has one source.
    """

    moments: Moments
    values: Values
    groups: Sequence[tuple[Any, ...]] | None = None
    punctuations: Sequence[tuple[int, Any, tuple[Any, ...]]] = ()
    origins: OriginRows | None = None


@dataclass(frozen=True)
class SourceProgress:
    """The progress of one stream so far."""

    delay: Any = None
    punctuated: bool = False
    by: tuple[str, ...] = ()
    heartbeat_lag: Any = None
    mark: Mark = field(default_factory=LowWater)
    heartbeat: LowWater = field(default_factory=LowWater)
    origins: OriginMarks = field(default_factory=OriginMarks)
    """The marks of the sources and partitions, if there are several."""

    def advance(self, arrivals: StreamArrivals) -> SourceProgress:
        """Fold a train's tuples and punctuations in.

        Groups have their own marks whatever origin their tuples come from.
        """
        if self.by:
            return replace(self, mark=self._advance_groups(arrivals))
        if self.origins.activity or (arrivals.origins is not None and len(arrivals.origins.codes)):
            return self._advance_origins(arrivals)
        assert isinstance(self.mark, LowWater)
        values = None if self.punctuated else arrivals.values
        punctuations = [(moment, value) for moment, value, _ in arrivals.punctuations]
        mark = self._advance_one(self.mark, arrivals.moments, values, punctuations)
        return replace(self, mark=mark)

    def tick(self, moments: Moments, now: Values) -> SourceProgress:
        """Let the clock pass: with a heartbeat the mark is at least now − lag."""
        if self.heartbeat_lag is None or not len(moments):
            return self
        return replace(self, heartbeat=self.heartbeat.then(moments, now - self.heartbeat_lag))

    def current(self) -> Mark:
        """The mark, by data and clock together."""
        if isinstance(self.mark, GroupedLowWater):
            if not len(self.heartbeat.moments):
                return self.mark
            groups = {g: maximum(m, self.heartbeat) for g, m in self.mark.groups.items()}
            return GroupedLowWater(self.by, groups, maximum(self.mark.others, self.heartbeat))
        return maximum(self.mark, self.heartbeat)

    def since(self, moment: int) -> SourceProgress:
        """Forget steps before `moment`, keeping what it sees."""
        return replace(
            self,
            mark=self.mark.since(moment),
            heartbeat=self.heartbeat.since(moment),
            origins=self.origins.since(moment),
        )

    def end(self, moment: int) -> SourceProgress:
        """The stream has ended: nothing comes after `moment`."""
        return replace(self, mark=self.mark.end(moment))

    def _advance_one(
        self,
        mark: LowWater,
        moments: Moments,
        values: Values | None,
        punctuations: Sequence[tuple[int, Any]],
    ) -> LowWater:
        steps: list[tuple[Moments, Values]] = []
        if values is not None and len(values):
            steps.append((moments, _lowered(values, self.delay)))
        if punctuations:
            at = np.array([moment for moment, _ in punctuations], np.int64)
            steps.append((at, as_values([value for _, value in punctuations])))
        if not steps:
            return mark
        if len(steps) == 1:
            return mark.then(*steps[0])
        at = np.concatenate([part[0] for part in steps])
        order = np.argsort(at, kind="stable")
        return mark.then(at[order], np.concatenate([part[1] for part in steps])[order])

    def _advance_origins(self, arrivals: StreamArrivals) -> SourceProgress:
        """Move the mark of each origin, and the stream's to the least of the active ones.

        Once a stream has an origin, a tuple without one moves no mark; a punctuation without one
        holds of the whole stream.
        """
        assert isinstance(self.mark, LowWater)
        rows = arrivals.origins or OriginRows.none()
        tuples = rows.codes_at(arrivals.moments)
        at = np.array([moment for moment, _, _ in arrivals.punctuations], np.int64)
        punctuated = rows.codes_at(at)
        marks = {}
        for code in {*np.unique(tuples).tolist(), *punctuated.tolist()} - {-1}:
            own = tuples == code
            marks[code] = self._advance_one(
                self.origins.marks.get(code, LowWater()),
                arrivals.moments[own],
                None if self.punctuated else arrivals.values[own],
                _chosen(arrivals.punctuations, punctuated == code),
            )
        mark = self.mark
        if not self.origins.activity and not self.punctuated:
            plain = arrivals.moments < rows.moments[0]
            mark = self._advance_one(mark, arrivals.moments[plain], arrivals.values[plain], ())
        origins = self.origins.advance(rows, marks)
        if len(rows.moments):
            steps = origins.least_since(int(rows.moments[0]), int(rows.moments[-1]) + 1)
            mark = mark.then(*steps)
        whole = _chosen(arrivals.punctuations, punctuated == -1)
        if whole:
            mark = maximum(mark, LowWater.of(whole))
        return replace(self, mark=mark, origins=origins)

    def _advance_groups(self, arrivals: StreamArrivals) -> GroupedLowWater:
        assert isinstance(self.mark, GroupedLowWater) or not len(self.mark.moments)
        known = self.mark.groups if isinstance(self.mark, GroupedLowWater) else {}
        tuples: dict[tuple[Any, ...], list[int]] = {}
        if not self.punctuated:
            for index, group in enumerate(arrivals.groups or ()):
                tuples.setdefault(group, []).append(index)
        punctuations: dict[tuple[Any, ...], list[tuple[int, Any]]] = {}
        for moment, value, group in arrivals.punctuations:
            punctuations.setdefault(group, []).append((moment, value))
        groups: dict[tuple[Any, ...], LowWater] = dict(known)
        for group in (*tuples, *(g for g in punctuations if g not in tuples)):
            rows = tuples.get(group, [])
            groups[group] = self._advance_one(
                known.get(group, LowWater()),
                arrivals.moments[rows],
                arrivals.values[rows],
                punctuations.get(group, []),
            )
        return GroupedLowWater(self.by, groups)


def _chosen(
    punctuations: Sequence[tuple[int, Any, tuple[Any, ...]]], chosen: Any
) -> list[tuple[int, Any]]:
    return [(m, value) for (m, value, _), kept in zip(punctuations, chosen, strict=True) if kept]


def _lowered(values: Values, delay: Any) -> Values:
    """Values less the delay; near the least integer as objects, which do not wrap round."""
    if not delay:
        return values
    if values.dtype == np.int64 and int(values.min()) - delay < -(2**63):
        values = values.astype(object)
    lowered: Values = values - delay
    return lowered
