"""Progress the naive way: what each arc promises now, from what has arrived so far.

Independent of `progress/`, which it checks. Values are exact Python numbers in the units of the
field: µs for timestamps, days for dates, the least digit for decimals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from auroral.boxes import Filter, Map, Union
from auroral.network.box import Box
from auroral.network.declarations import Stream
from auroral.network.types import Schema, Type
from auroral.sql.expression import analyze

Group = tuple[Any, ...]
END = math.inf
_NEVER: Group = (object(),)
"""A group that no tuple has."""


@dataclass(frozen=True)
class Promise:
    """For each group of `by`, the value below which nothing comes; without `by` the group is ().

    `others` holds for every group that never came.
    """

    by: tuple[str, ...]
    marks: Mapping[Group, Any]
    others: Any = None

    def of(self, group: Group) -> Any:
        return self.marks.get(group if self.by else (), self.others)


Promises = Mapping[str, Promise]
"""By attribute."""


@dataclass
class StreamMark:
    """The promise of one stream, raised by whatever arrives."""

    stream: Stream
    ended: bool = False
    _marks: dict[Group, Any] = field(default_factory=dict)
    _clock: Any = None

    def take(self, row: Mapping[str, Any]) -> None:
        """Move after a tuple: to its value less the delay; NULL and NaN say nothing."""
        declared = self.stream.progress
        if declared is None or declared.punctuated:
            return
        schema = self.stream.schema_
        value = number(row[schema.field(declared.on).name], self._type)
        if value is not None:
            group = tuple(row[schema.field(name).name] for name in declared.by)
            self._raise(group, value - self._delay() if declared.delay else value)

    def punctuate(self, value: Any, group: Group) -> None:
        """Move to a value that the data promise."""
        self._raise(group, number(value, self._type))

    def tick(self, now_us: int) -> None:
        """Move to (now − lag), if there is a heartbeat."""
        declared = self.stream.progress
        if declared is not None and declared.heartbeat is not None:
            now = _clock(now_us, self._type) - _clock(declared.heartbeat.lag_us(), self._type)
            self._clock = now if self._clock is None else max(self._clock, now)

    def promises(self) -> Promises:
        """What holds now; a group that never came has only the clock's word."""
        declared = self.stream.progress
        if declared is None:
            return {}
        marks = dict(self._marks) if declared.by else {(): self._marks.get(())}
        for group, mark in marks.items():
            known = [value for value in (mark, self._clock) if value is not None]
            marks[group] = END if self.ended else max(known, default=None)
        schema = self.stream.schema_
        by = tuple(schema.field(name).name for name in declared.by)
        others = END if self.ended else self._clock
        return {schema.field(declared.on).name: Promise(by, marks, others)}

    @property
    def _type(self) -> Type:
        assert self.stream.progress is not None
        return self.stream.schema_.field(self.stream.progress.on).type

    def _delay(self) -> Any:
        """The delay; on a type with a least unit, as many whole units as it has."""
        assert self.stream.progress is not None
        delay, type = self.stream.progress.delay_in(self._type.name), self._type
        return math.floor(Fraction(delay) * 10**type.scale) if type.name == "decimal" else delay

    def _raise(self, group: Group, value: Any) -> None:
        key = group_key(group)
        self._marks[key] = max(self._marks.get(key, value), value)


def passed_on(box: Box, schemas: Sequence[Schema], inputs: Sequence[Promises]) -> Promises:
    """What a box promises on each of its arcs, given what its inputs promise."""
    if isinstance(box, Filter):
        return inputs[0]
    if isinstance(box, Map):
        return _mapped(box, schemas[0], inputs[0])
    assert isinstance(box, Union)
    return _united(schemas[0], inputs)


def _mapped(box: Map, schema: Schema, promises: Promises) -> Promises:
    copies: dict[str, list[str]] = {name: [name] for name in box.kept(schema)}
    for name, how in box.compute.items():
        column = analyze(how, schema).column if isinstance(how, str) else None
        if column is not None:
            copies.setdefault(column, []).append(name)
    return {
        copy: replace(promise, by=tuple(copies[name][0] for name in promise.by))
        for attribute, promise in promises.items()
        if all(name in copies for name in promise.by)
        for copy in copies.get(attribute, ())
    }


def _united(schema: Schema, inputs: Sequence[Promises]) -> Promises:
    """Per attribute the least of all inputs; a promise for all groups is one for each."""
    found: dict[str, Promise] = {}
    for name in schema.names:
        given = [_fold(promises).get(name.lower()) for promises in inputs]
        every = [promise for promise in given if promise is not None]
        shapes = {tuple(field.lower() for field in promise.by) for promise in every} - {()}
        if len(every) == len(inputs) and len(shapes) <= 1:
            by = next((promise.by for promise in every if promise.by), ())
            groups = dict.fromkeys(g for promise in every if promise.by for g in promise.marks)
            least = {group: _least(every, group) for group in (groups if by else [()])}
            found[name] = Promise(by, least, _least(every, _NEVER))
    return found


def _fold(promises: Promises) -> Promises:
    return {attribute.lower(): promise for attribute, promise in promises.items()}


def _least(promises: Sequence[Promise], group: Group) -> Any:
    marks = [promise.of(group) for promise in promises]
    return None if None in marks else min(marks)


def group_key(group: Group) -> Group:
    """A group that compares as Spark groups: NaN equals itself."""
    return tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in group)


def number(value: Any, type: Type) -> Any:
    """A value in the units of its field, or None if it has no place in the order."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, datetime):
        zone = UTC if value.tzinfo else None
        return (value - datetime(1970, 1, 1, tzinfo=zone)) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    return int(Fraction(value) * 10**type.scale) if type.name == "decimal" else value


def _clock(us: int, type: Type) -> Any:
    """A time or a span of the clock in the units of a field; whole units where it has them."""
    if type.name.startswith("timestamp"):
        return us
    if type.name == "date":
        return us // 86_400_000_000
    if type.name in ("float", "double"):
        return us / 1_000_000
    return us * 10**type.scale // 1_000_000
