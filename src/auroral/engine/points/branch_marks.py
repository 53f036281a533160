"""The marks of an attached query: recorded with the history it reads, then those of the network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from auroral.engine.points.mark_series import CLOCK, has_groups, progress_of, single_series
from auroral.engine.points.marks_log import Moves, moves_between
from auroral.engine.points.point import PointHistory
from auroral.engine.runtime.train import cut
from auroral.engine.runtime.watermarks import WatermarkTracker
from auroral.network.check import CheckedNetwork
from auroral.progress.lowwater import LowWater, Moments
from auroral.progress.propagation import ArcProgress
from auroral.storage import Store


class BranchWatermarks(WatermarkTracker):
    """Marks whose stream is an arc of another network: given, not computed from arrivals."""

    def __init__(
        self,
        checked: CheckedNetwork,
        arc: str,
        shape: ArcProgress,
        saved: Mapping[str, Any] | None = None,
    ):
        """`shape` is which marks the arc has; of what was `saved` only counted tuples matter."""
        kept = {name: state for name, state in (saved or {}).items() if name.startswith("number ")}
        super().__init__(checked, kept)
        self._arc = arc
        self._shape = shape
        self._series: dict[str, LowWater] = {}

    def extend(self, moves: Moves) -> None:
        """Take in later moves of the arc's marks, and of the clock."""
        self._known = self._feeding = None
        for name, (moments, values) in moves.items():
            if name == CLOCK:
                self.clock = self.clock.then(moments, values)
            else:
                self._series[name] = self._series.get(name, LowWater()).then(moments, values)

    @property
    def counts(self) -> bool:
        """Whether some box numbers the tuples of the arc."""
        return bool(self._numbers)

    def count(self, moments: Moments) -> None:
        """Take in the moments of later tuples of the arc."""
        self._known = self._feeding = None
        for name, mark in self._numbered.items():
            before = int(mark.values[-1]) if len(mark.values) else 0
            numbers = before + 1 + np.arange(len(moments), dtype=np.int64)
            self._numbered[name] = mark.then(moments, numbers)

    def _stream_marks(self) -> dict[str, ArcProgress]:
        series, ended = self._series, self.ended
        if ended is not None:
            series = {name: mark.end(ended) for name, mark in series.items()}
        return {self._arc: progress_of(self._shape, series)}

    def logs(self) -> list[str]:
        return []

    def forget_before(self, moment: int) -> None:
        super().forget_before(moment)
        self._series = {name: mark.since(moment - 1) for name, mark in self._series.items()}

    def saved(self, before: int) -> dict[str, Any]:
        kept = super().saved(before)
        return {name: kept[name] for name in (f"number of {box}" for box in self._numbers)}


class BranchArrivals:
    """Moves the marks of an attached query on, as far as it reads."""

    def __init__(
        self,
        store: Store,
        point: PointHistory,
        marks: BranchWatermarks,
        live: Callable[[], WatermarkTracker],
        since: int,
    ):
        """`live` are the marks of the network; `since` is where the query goes on."""
        self._store = store
        self._point = point
        self._marks = marks
        self._live = live
        self._folded = since
        before = held_before(point, live(), since)
        at = np.array([since - 1], np.int64)
        marks.extend({name: (at, np.array([value])) for name, value in before.items()})

    def fold(self, complete: int) -> None:
        first = self._folded
        if complete <= first:
            return
        recorded = self._point.marks.recorded
        if first < recorded:
            self._marks.extend(self._point.marks.read(first, min(complete, recorded)))
        if complete > recorded:
            series = self._point.series(self._live())
            self._marks.extend(moves_between(series, max(first, recorded), complete))
        if self._marks.counts:
            for moments in self._moments(first, complete):
                self._marks.count(moments)
        self._folded = complete

    def _moments(self, first: int, last: int) -> Iterable[Moments]:
        for segment in self._store.segments(self._point.arc, first):
            if segment.file and segment.first < last:
                moments: Moments = cut(self._store.table(segment, ["_seq"]), first, last)[
                    "_seq"
                ].to_numpy()
                yield moments


def held_before(point: PointHistory, live: WatermarkTracker, moment: int) -> dict[str, Any]:
    """The value of each series of a point's marks just before a moment."""
    wanted = None
    if not has_groups(point.shape):
        wanted = single_series(point.shape, clock=point.uses_clock)
    known = point.marks.before(min(moment, point.marks.recorded), wanted)
    for name, (_, values) in moves_between(
        point.series(live), point.marks.recorded, moment
    ).items():
        known[name] = values[-1:].tolist()[0]
    return known
