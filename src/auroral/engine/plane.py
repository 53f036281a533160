"""The progress plane of a running network: marks of all arcs, as far as they are processed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.network.check import CheckedNetwork
from auroral.network.declarations import Stream
from auroral.progress.lowwater import END, GroupedLowWater, LowWater, Mark, as_values
from auroral.progress.propagation import ArcProgress
from auroral.progress.sources import Arrivals, SourceProgress
from auroral.progress.values import column_marks, from_mark, seconds_to_mark

Punctuations = Sequence[tuple[int, Any, tuple[Any, ...]]]


class ProgressPlane:
    """Folds arrivals into the marks of streams and carries them through the boxes."""

    def __init__(self, checked: CheckedNetwork, saved: Mapping[str, Any] | None = None):
        self._checked = checked
        self._streams: dict[str, SourceProgress] = {}
        for name, stream in checked.network.streams.items():
            if stream.progress is not None:
                self._streams[name] = _restore(_initial(stream), (saved or {}).get(name))

    @property
    def has_heartbeats(self) -> bool:
        return any(p.heartbeat_lag is not None for p in self._streams.values())

    def needs(self, stream: str) -> list[str] | None:
        """The columns `advance` wants of a stream's tuples; None if it declares no progress."""
        declared = self._checked.network.streams[stream].progress
        if declared is None:
            return None
        schema = self._checked.arcs[stream].schema
        fields = [schema.field(name).name for name in (declared.on, *declared.by)]
        return ["_seq", *dict.fromkeys(fields)]

    def advance(self, stream: str, tuples: pa.Table, punctuations: Punctuations) -> None:
        """Fold a train's tuples of a stream in."""
        declared = self._checked.network.streams[stream].progress
        assert declared is not None
        schema = self._checked.arcs[stream].schema
        values, known = column_marks(tuples[schema.field(declared.on).name])
        moments = tuples["_seq"].to_numpy()
        groups = None
        if declared.by:
            columns = [tuples[schema.field(n).name].to_pylist() for n in declared.by]
            rows = zip(*columns, strict=True)
            groups = [group_key(g) for g, k in zip(rows, known, strict=True) if k]
        arrivals = Arrivals(moments[known], values[known], groups, punctuations)
        self._streams[stream] = self._streams[stream].advance(arrivals)

    def tick(self, streams: Iterable[str], moments: Any, times_us: Any) -> None:
        """Let the clock pass on those of the streams that have a heartbeat."""
        for name in streams:
            progress = self._streams.get(name)
            if progress is not None and progress.heartbeat_lag is not None:
                kind = self._on_type(name)
                now = seconds_to_mark(times_us, kind.name, kind.scale)
                self._streams[name] = progress.tick(moments, np.asarray(now))

    def end(self, moment: int) -> None:
        """Every stream has ended."""
        self._streams = {name: p.end(moment) for name, p in self._streams.items()}

    def forget_before(self, stream: str, moment: int) -> None:
        """Drop steps that nothing can see any more."""
        if stream in self._streams:
            self._streams[stream] = self._streams[stream].since(moment)

    def arcs(self) -> dict[str, ArcProgress]:
        """The marks of every arc."""
        found: dict[str, ArcProgress] = {name: {} for name in self._checked.network.streams}
        for name, progress in self._streams.items():
            declared = self._checked.network.streams[name].progress
            assert declared is not None
            on = self._checked.arcs[name].schema.field(declared.on).name
            found[name] = {on: progress.current()}
        for name in self._checked.order:
            box = self._checked.network.boxes[name]
            if box.executable:
                inputs = [found[arc.name] for arc in self._checked.inputs_of(name)]
                passed = box.progress(inputs)
                found |= {arc.name: passed for arc in self._checked.outputs_of(name)}
        return found

    def shown(self) -> dict[str, dict[str, Any]]:
        """The latest marks of every arc that has any, as their fields show them."""
        result: dict[str, dict[str, Any]] = {}
        for arc, marks in self.arcs().items():
            schema = self._checked.arcs[arc].schema
            for attribute, mark in marks.items():
                kind = schema.field(attribute).type
                result.setdefault(arc, {})[attribute] = _shown(mark, kind.name, kind.scale)
        return result

    def saved(self, stream: str) -> Any:
        """What must survive a restart: the latest marks of a stream."""
        progress = self._streams[stream]
        mark = progress.mark
        if isinstance(mark, GroupedLowWater):
            groups = [[list(g), m.steps()[-1:], m.ended] for g, m in mark.groups.items()]
            data: Any = [groups, mark.others.ended]
        else:
            data = [mark.steps()[-1:], mark.ended]
        return {"mark": data, "heartbeat": progress.heartbeat.steps()[-1:]}

    def _on_type(self, stream: str) -> Any:
        declared = self._checked.network.streams[stream].progress
        assert declared is not None
        return self._checked.arcs[stream].schema.field(declared.on).type


def group_key(group: Sequence[Any]) -> tuple[Any, ...]:
    """A group's values as JSON can hold them, so that they compare equal after a restart."""
    plain = (type(None), bool, int, float, str)
    # NaN is not equal to itself, but it is one group, as in Spark.
    return tuple(v if isinstance(v, plain) and v == v else str(v) for v in group)


def _initial(stream: Stream) -> SourceProgress:
    declared = stream.progress
    assert declared is not None
    kind = stream.schema_.field(declared.on).type
    delay = declared.delay_in(kind.name)
    if kind.name == "decimal":
        delay = int(delay * 10**kind.scale)
    lag = declared.heartbeat.lag_us() if declared.heartbeat else None
    return SourceProgress(
        delay=delay,
        punctuated=declared.punctuated,
        by=tuple(stream.schema_.field(name).name for name in declared.by),
        heartbeat_lag=None if lag is None else seconds_to_mark(lag, kind.name, kind.scale),
        mark=GroupedLowWater(declared.by, {}) if declared.by else LowWater(),
    )


def _restore(progress: SourceProgress, saved: Any) -> SourceProgress:
    if saved is None:
        return progress
    mark: Mark
    if progress.by:
        held, ended = saved["mark"]
        groups = {tuple(g): LowWater.of(_steps(s), e) for g, s, e in held}
        mark = GroupedLowWater(progress.by, groups, LowWater(ended=ended))
    else:
        steps, ended = saved["mark"]
        mark = LowWater.of(_steps(steps), ended)
    return replace(progress, mark=mark, heartbeat=LowWater.of(_steps(saved["heartbeat"])))


def _steps(saved: Any) -> list[tuple[int, Any]]:
    return [(moment, value) for moment, value in saved]


def _shown(mark: Mark, kind: str, scale: int) -> Any:
    if isinstance(mark, GroupedLowWater):
        return {
            ", ".join(map(str, group)): _value(m.latest, kind, scale)
            for group, m in sorted(mark.groups.items(), key=lambda item: str(item[0]))
        }
    return _value(mark.latest, kind, scale)


def _value(mark: Any, kind: str, scale: int) -> Any:
    return "end" if mark == END else from_mark(mark, kind, scale)


__all__ = ["ProgressPlane", "as_values", "group_key"]
