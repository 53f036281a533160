"""The progress plane of a running network: marks of all arcs, as far as logs are complete."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.boxes import Number
from auroral.ids import CLOCK_LOG, StreamLogId
from auroral.network.box import LATE_PORTS
from auroral.network.check import CheckedNetwork
from auroral.network.declarations import Stream
from auroral.progress.declaration import Progress
from auroral.progress.heartbeats import unit_caution
from auroral.progress.lowwater import (
    END,
    GroupedLowWater,
    JointLowWater,
    LowWater,
    Mark,
    as_values,
)
from auroral.progress.origins import OriginMarks, OriginRows
from auroral.progress.propagation import ArcProgress
from auroral.progress.sources import SourceProgress, StreamArrivals
from auroral.progress.values import clock_to_mark, column_marks, from_mark

_LOG = logging.getLogger("auroral")
Punctuations = Sequence[tuple[int, Any, tuple[Any, ...]]]


class WatermarkTracker:
    """Folds arrivals into the marks of streams and carries them through the boxes."""

    def __init__(
        self,
        checked: CheckedNetwork,
        saved: Mapping[str, Any] | None = None,
        running: Collection[str] | None = None,
    ):
        """With what was saved; `running` are the boxes that somebody reads, all if not given."""
        self._checked = checked
        saved = saved or {}
        self._streams: dict[str, SourceProgress] = {}
        """By stream; of further fields of a stream that progress, by stream and field."""
        self._declared: dict[str, tuple[str, Progress]] = {}
        for name, stream in checked.network.streams.items():
            for at, declared in enumerate(stream.progressing):
                key = name if at == 0 else f"{name}@{declared.on}"
                self._declared[key] = (name, declared)
                self._streams[key] = _restore(_initial(stream, declared), saved.get(key))
        self._numbers = {
            name: box.input
            for name, box in checked.network.boxes.items()
            if isinstance(box, Number) and (running is None or name in running)
        }
        """Boxes that number the tuples of a stream, each from when somebody read it."""
        self._numbered = {
            name: LowWater.of(_steps(saved.get(f"number of {name}", []))) for name in self._numbers
        }
        self.clock = LowWater.of(_steps(saved.get(CLOCK_LOG, [])))
        self.ended: int | None = None
        self._drained: dict[str, int] = {}
        """Boxes for which the input ends before that of the others, and when."""
        self._known: dict[str, ArcProgress] | None = None
        self._feeding: dict[str, ArcProgress] | None = None
        self._feeders = _feeders(checked)
        self._beats_judged: set[str] = set()
        """Streams of which it is known whether heartbeats count in the unit of their values."""

    @property
    def uses_clock(self) -> bool:
        """Whether the time that passes between arrivals matters."""
        beats = any(p.heartbeat_lag is not None for p in self._streams.values())
        return beats or any(box.times_out for box in self._checked.network.boxes.values())

    def logs(self) -> list[str]:
        """The logs it reads."""
        streams = [name for name in self._checked.network.streams if self.needs(name)]
        origins = [origins_log(name) for name in self._streams if name == self._declared[name][0]]
        return [*streams, *origins, *([CLOCK_LOG] if self.uses_clock else [])]

    def needs(self, stream: str) -> list[str] | None:
        """The columns `advance` wants of a stream's tuples; None if nothing depends on them."""
        every = self._checked.network.streams[stream].progressing
        if not every:
            return ["_seq"] if stream in self._numbers.values() else None
        schema = self._checked.arcs[stream].schema
        fields = [schema.field(n).name for declared in every for n in (declared.on, *declared.by)]
        return ["_seq", *dict.fromkeys(fields)]

    def advance(
        self,
        stream: str,
        tuples: pa.Table,
        punctuations: Punctuations,
        origins: OriginRows | None = None,
    ) -> None:
        """Fold tuples of a stream in; `origins` if it has several sources or partitions."""
        self._known = self._feeding = None
        moments = tuples["_seq"].to_numpy()
        for name in [name for name, of in self._numbers.items() if of == stream]:
            mark = self._numbered[name]
            before = int(mark.values[-1]) if len(mark.values) else 0
            counts = before + 1 + np.arange(len(moments), dtype=np.int64)
            self._numbered[name] = mark.then(moments, counts)
        for key, (name, declared) in self._declared.items():
            if name == stream:
                own = declared is self._checked.network.streams[stream].punctuated
                self._advance(key, tuples, punctuations if own else (), origins)

    def _advance(
        self, key: str, tuples: pa.Table, punctuations: Punctuations, origins: OriginRows | None
    ) -> None:
        stream, declared = self._declared[key]
        moments = tuples["_seq"].to_numpy()
        schema = self._checked.arcs[stream].schema
        values, known = column_marks(tuples[schema.field(declared.on).name])
        groups = None
        if declared.by:
            columns = [tuples[schema.field(n).name].to_pylist() for n in declared.by]
            rows = zip(*columns, strict=True)
            groups = [group_key(g) for g, k in zip(rows, known, strict=True) if k]
        self._judge_heartbeat(key, values[known])
        arrivals = StreamArrivals(moments[known], values[known], groups, punctuations, origins)
        self._streams[key] = self._streams[key].advance(arrivals)

    def tick(self, moments: Any, times_us: Any) -> None:
        """Let the clock pass."""
        self._known = self._feeding = None
        self.clock = self.clock.then(moments, times_us)
        for name, progress in self._streams.items():
            if progress.heartbeat_lag is not None:
                kind = self._on_type(name)
                now = clock_to_mark(times_us, kind.name, kind.scale, self._unit(name))
                self._streams[name] = progress.tick(moments, np.asarray(now))

    def end(self, moment: int) -> None:
        """Every stream has ended."""
        self._known = self._feeding = None
        self.ended = moment
        self._streams = {name: p.end(moment) for name, p in self._streams.items()}
        self._numbered = {name: mark.end(moment) for name, mark in self._numbered.items()}

    def drain(self, boxes: Iterable[str], moment: int) -> None:
        """Let the input of some boxes end at a moment: their windows close."""
        self._drained = dict.fromkeys(boxes, moment)

    def end_of(self, box: str) -> int | None:
        """The moment at which the input of a box ended, if it did."""
        return self._drained.get(box, self.ended)

    def forget_before(self, moment: int) -> None:
        """Drop steps that nothing can see any more."""
        self._known = self._feeding = None
        self._streams = {name: p.since(moment - 1) for name, p in self._streams.items()}
        self._numbered = {name: mark.since(moment - 1) for name, mark in self._numbered.items()}
        self.clock = self.clock.since(moment - 1)

    def arcs(self) -> dict[str, ArcProgress]:
        """The marks of every arc."""
        if self._known is None:
            self._known = self._carried(self._checked.order)
        return self._known

    def input_watermarks(self, box: str) -> tuple[Mark | JointLowWater, ...]:
        """For each input of a stateful box, the mark by which it judges tuples."""
        marks = self._checked.network.boxes[box].relies_on(self._feeding_of(box))
        ended = self.end_of(box)
        return tuple(mark if ended is None else mark.end(ended) for mark in marks)

    def inputs_of(self, box: str) -> dict[tuple[str, str], Mark]:
        """All marks of the arcs that a stateful box reads, by arc and attribute."""
        arcs, ended = self._checked.network.boxes[box].sources(), self.end_of(box)
        return {
            (arc, name): mark if ended is None else mark.end(ended)
            for arc, marks in zip(arcs, self._feeding_of(box), strict=True)
            for name, mark in marks.items()
        }

    def watch(self, arcs: Iterable[str]) -> None:
        """Let `marks_of` know the marks of arcs that no box with state reads."""
        self._known = self._feeding = None
        self._feeders = _feeders(self._checked, arcs)

    def marks_of(self, arc: str) -> ArcProgress:
        """The marks of an arc that is watched."""
        return self._fed().get(arc, {})

    def _feeding_of(self, box: str) -> list[ArcProgress]:
        return self._inputs(box, self._fed())

    def _fed(self) -> dict[str, ArcProgress]:
        if self._feeding is None:
            # Marks that only show in statistics would cost every step, per group.
            self._feeding = self._carried(self._feeders)
        return self._feeding

    def _stream_marks(self) -> dict[str, ArcProgress]:
        """The marks of the streams."""
        found: dict[str, ArcProgress] = {name: {} for name in self._checked.network.streams}
        for name, progress in self._streams.items():
            stream, declared = self._declared[name]
            on = self._checked.arcs[stream].schema.field(declared.on).name
            found[stream] = {**found[stream], on: progress.current()}
        return found

    def _carried(self, boxes: Sequence[str]) -> dict[str, ArcProgress]:
        found = self._stream_marks()
        for name in boxes:
            box = self._checked.network.boxes[name]
            if not box.executable:
                continue
            passed = box.progress(self._inputs(name, found), self._checked.schemas_of(name))
            if isinstance(box, Number):
                passed = {**passed, box.as_: self._numbered.get(name, LowWater())}
            for arc in self._checked.outputs_of(name):
                found[arc.name] = {} if arc.port in LATE_PORTS else passed
        return found

    def _inputs(self, box: str, found: Mapping[str, ArcProgress]) -> list[ArcProgress]:
        return [found.get(arc, {}) for arc in self._checked.network.boxes[box].sources()]

    def shown(self) -> dict[str, dict[str, Any]]:
        """The latest marks of every arc that has any, as their fields show them."""
        result: dict[str, dict[str, Any]] = {}
        for arc, marks in self.arcs().items():
            schema = self._checked.arcs[arc].schema
            for attribute, mark in marks.items():
                kind = schema.field(attribute).type
                result.setdefault(arc, {})[attribute] = _shown(mark, kind.name, kind.scale)
        return result

    def shown_origins(self, stream: str, names: Sequence[str]) -> dict[str, Any]:
        """The latest mark of each origin of a stream, and whether it is idle."""
        if stream not in self._streams:
            return {}
        kind, origins = self._on_type(stream), self._streams[stream].origins
        return {
            name: {
                "mark": _value(origins.marks[code].latest, kind.name, kind.scale),
                "idle": not origins.is_active(code),
            }
            for code, name in enumerate(names)
            if code in origins.activity
        }

    def saved(self, before: int) -> dict[str, Any]:
        """What must survive a restart: the marks as they were before a moment."""
        state: dict[str, Any] = {CLOCK_LOG: _last(self.clock, before)}
        for name, mark in self._numbered.items():
            state[f"number of {name}"] = _last(mark, before)
        for name, progress in self._streams.items():
            of = progress.mark
            if isinstance(of, GroupedLowWater):
                data: Any = [[list(g), _last(m, before)] for g, m in of.groups.items()]
            else:
                data = _last(of, before)
            state[name] = {"mark": data, "heartbeat": _last(progress.heartbeat, before)}
            if progress.origins.activity:
                state[name]["origins"] = _saved_origins(progress.origins, before)
        return state

    def _judge_heartbeat(self, key: str, values: Any) -> None:
        """Warn once if the first values of a stream cannot be times of its heartbeat's unit."""
        if self._streams[key].heartbeat_lag is None or key in self._beats_judged:
            return
        kind = self._on_type(key)
        now_us = self.clock.latest
        if len(values) and now_us is not None and kind.is_numeric:
            self._beats_judged.add(key)
            value = float(values[0]) / 10**kind.scale
            stream, declared = self._declared[key]
            unit = self._unit(key)
            caution = unit_caution(stream, declared.on, value, unit, now_us / 1_000_000)
            if caution is not None:
                _LOG.warning(caution)

    def _unit(self, key: str) -> str:
        beat = self._declared[key][1].heartbeat
        return (beat and beat.unit) or "s"

    def _on_type(self, key: str) -> Any:
        stream, declared = self._declared[key]
        return self._checked.arcs[stream].schema.field(declared.on).type


def _feeders(checked: CheckedNetwork, arcs: Iterable[str] = ()) -> list[str]:
    """The boxes before some stateful box, and before some arcs, in flow order."""
    needed = {checked.arcs[arc].producer for arc in arcs} & set(checked.network.boxes)
    stack = [*needed] + [name for name in checked.order if checked.network.boxes[name].stateful]
    while stack:
        for arc in checked.inputs_of(stack.pop()):
            if arc.producer in checked.network.boxes and arc.producer not in needed:
                needed.add(arc.producer)
                stack.append(arc.producer)
    return [name for name in checked.order if name in needed]


def origins_log(stream: str) -> str:
    """The log that says which source or partition the tuples of a stream came from."""
    return str(StreamLogId(stream, "origins"))


def group_key(group: Sequence[Any]) -> tuple[Any, ...]:
    """A group's values as JSON can hold them, so that they compare equal after a restart."""
    plain = (type(None), bool, int, float, str)
    # NaN is not equal to itself, but it is one group, as in Spark.
    return tuple(v if isinstance(v, plain) and v == v else str(v) for v in group)


def _initial(stream: Stream, declared: Progress) -> SourceProgress:
    kind = stream.schema_.field(declared.on).type
    delay = declared.delay_in(kind.name)
    if kind.name == "decimal":
        delay = int(delay * 10**kind.scale)
    lag = declared.heartbeat.lag_us() if declared.heartbeat else None
    unit = (declared.heartbeat and declared.heartbeat.unit) or "s"
    return SourceProgress(
        delay=delay,
        punctuated=declared.punctuated,
        by=tuple(stream.schema_.field(name).name for name in declared.by),
        heartbeat_lag=None if lag is None else clock_to_mark(lag, kind.name, kind.scale, unit),
        mark=GroupedLowWater(declared.by, {}) if declared.by else LowWater(),
    )


def _restore(progress: SourceProgress, saved: Any) -> SourceProgress:
    if saved is None:
        return progress
    mark: Mark
    if progress.by:
        groups = {tuple(group): LowWater.of(_steps(steps)) for group, steps in saved["mark"]}
        mark = GroupedLowWater(progress.by, groups)
    else:
        mark = LowWater.of(_steps(saved["mark"]))
    return replace(
        progress,
        mark=mark,
        heartbeat=LowWater.of(_steps(saved["heartbeat"])),
        origins=_restored_origins(saved.get("origins", [])),
    )


def _saved_origins(origins: OriginMarks, before: int) -> list[Any]:
    """Each origin that was known before a moment: its number, mark, and since when it was so."""
    found = []
    for code, steps in origins.activity.items():
        known = [step for step in steps if step[0] < before]
        if known:
            found.append([code, _last(origins.marks[code], before), known[-1]])
    return found


def _restored_origins(saved: Iterable[Any]) -> OriginMarks:
    marks, activity = {}, {}
    for code, steps, (moment, active) in saved:
        marks[code] = LowWater.of(_steps(steps))
        activity[code] = ((moment, active),)
    return OriginMarks(marks, activity)


def _last(mark: LowWater, before: int) -> list[tuple[int, Any]]:
    """The step that holds just before a moment, if there is one."""
    return [step for step in mark.since(before - 1).steps()[:1] if step[0] < before]


def _steps(saved: Iterable[Any]) -> list[tuple[int, Any]]:
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


__all__ = ["WatermarkTracker", "as_values", "group_key", "origins_log"]
