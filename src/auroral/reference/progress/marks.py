"""Progress the naive way: what a promise is, and what each stream promises now.

Independent of `progress/`, which it checks. Values are exact Python numbers in the units of the
field: µs for timestamps, days for dates, the least digit for decimals.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import pyarrow as pa

from auroral.network.declarations import Stream
from auroral.network.types import Type
from auroral.progress.declaration import Progress

Group = tuple[Any, ...]
END = math.inf
# Python rounds decimals to 28 digits unless told otherwise; fields have up to 38.
_EXACT = Context(prec=76)


@dataclass(frozen=True)
class JointMark:
    """What holds of pairs: every tuple to come has A >= `own` or `by` >= `other` [3 §7]."""

    by: str
    own: Any
    other: Any


@dataclass(frozen=True)
class GroupMarks(Mapping[Group, Any]):
    """The marks of groups, found when one is asked for; also of groups that never came."""

    groups: Callable[[], Iterable[Group]]
    of: Callable[[Group], Any]

    def __getitem__(self, group: Group) -> Any:
        return self.of(group)

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups())

    def __len__(self) -> int:
        return sum(1 for _ in self.groups())


@dataclass(frozen=True)
class Promise:
    """For each group of `by`, the value below which nothing comes; without `by` the group is ().

    `others` holds for every group that never came, and no group's mark is below it; `joint` says
    more of pairs of attributes. `raised` is the list to which a stream adds each group whose mark
    it raises, so that a box looks only at these; without one it looks at all groups it has.
    """

    by: tuple[str, ...]
    marks: Mapping[Group, Any]
    others: Any = None
    joint: tuple[JointMark, ...] = ()
    raised: Sequence[Group] | None = None

    def of(self, group: Group) -> Any:
        return self.marks.get(group if self.by else (), self.others)

    def least(self) -> Any:
        """What holds of all groups, those that never came too."""
        return self.others if self.by else self.marks[()]

    def among(self, by: tuple[str, ...], group: Group) -> Any:
        """What holds of a group of `by`; the least of all if that does not tell the group here."""
        return self.of(self.key(by, group)) if self.told_by(by) else self.least()

    def told_by(self, by: tuple[str, ...]) -> bool:
        """Whether a group of `by` tells a group here."""
        return set(self.by) <= set(by)

    def key(self, by: tuple[str, ...], group: Group) -> Group:
        """The group here that a group of `by` belongs to."""
        return tuple(group[by.index(name)] for name in self.by)


Promises = Mapping[str, Promise]
"""By attribute."""


@dataclass
class StreamMark:
    """The promise of one stream, raised by whatever arrives."""

    stream: Stream
    progress: Progress | None
    ended: bool = False
    taken: int = 0
    _marks: dict[Group, list[tuple[int, Any]]] = field(default_factory=dict)
    """The marks each group has had, with the number of raises at which it got them."""
    _raised: list[Group] = field(default_factory=list)
    _clock: Any = None
    _origins: dict[str, Any] = field(default_factory=dict)
    """The mark of each source or partition, if there are several."""
    _active: set[str] = field(default_factory=set)

    def numbers(self) -> Promise:
        """What holds of the arrival numbers of its tuples."""
        return Promise((), {(): END if self.ended else self.taken or None})

    def open(self, origin: str) -> None:
        """Wait for an origin from now on."""
        if origin not in self._origins:
            self._origins[origin] = None
            self._active.add(origin)
            self._settle()

    def rest(self, origin: str) -> None:
        """Wait for an origin no more, until it brings something."""
        self._origins.setdefault(origin, None)
        self._active.discard(origin)
        self._settle()

    def take(self, row: Mapping[str, Any], origin: str | None = None) -> None:
        """Move after a tuple: to its value less the delay; NULL and NaN say nothing."""
        self.taken += 1
        if origin is not None:
            self._origins.setdefault(origin, None)
            self._active.add(origin)
        declared = self.progress
        if declared is None:
            return
        if declared.punctuated:
            self._settle()
            return
        schema = self.stream.schema_
        value = number(row[schema.field(declared.on).name], self._type)
        if value is not None:
            group = tuple(row[schema.field(name).name] for name in declared.by)
            mark = value - self._delay() if declared.delay else value
            if declared.by or not self._origins:
                self._raise(group, mark)
            elif origin is not None:
                self._origins[origin] = max(mark, _or_least(self._origins[origin], mark))
        self._settle()

    def punctuate(self, value: Any, group: Group, origin: str | None = None) -> None:
        """Move to a value that the data promise; without an origin, of the whole stream."""
        assert self.progress is not None
        mark = number(value, self._type)
        if origin is None or self.progress.by:
            self._raise(group, mark)
        else:
            known = self._origins.get(origin)
            self._origins[origin] = max(mark, _or_least(known, mark))
            self._active.add(origin)
        self._settle()

    def _settle(self) -> None:
        """The least of the active origins, the greatest if none is; never back."""
        declared = self.progress
        if declared is None or declared.by:
            return
        if self._active:
            mark = least([self._origins[origin] for origin in self._active])
        else:
            mark = max((m for m in self._origins.values() if m is not None), default=None)
        if mark is not None:
            self._raise((), mark)

    def tick(self, now_us: int) -> None:
        """Move to (now − lag), if there is a heartbeat."""
        declared = self.progress
        if declared is not None and declared.heartbeat is not None:
            unit = declared.heartbeat.unit or "s"
            lag = _clock(declared.heartbeat.lag_us(), self._type, unit)
            now = _clock(now_us, self._type, unit) - lag
            self._clock = now if self._clock is None else max(self._clock, now)

    def promises(self) -> Promises:
        """What holds now; a group that never came has only the clock's word."""
        declared = self.progress
        if declared is None:
            return {}
        schema = self.stream.schema_
        by = tuple(schema.field(name).name for name in declared.by)
        others = END if self.ended else self._clock
        now, histories = len(self._raised), self._marks

        def of(group: Group) -> Any:
            found = bisect_right(histories.get(group, ()), now, key=lambda step: step[0])
            known = [histories[group][found - 1][1]] if found else []
            return max([*known, *([] if others is None else [others])], default=None)

        def groups() -> Iterable[Group]:
            return [group for group, steps in histories.items() if steps[0][0] <= now]

        marks = GroupMarks(groups, of) if by else {(): of(())}
        return {schema.field(declared.on).name: Promise(by, marks, others, (), self._raised)}

    @property
    def _type(self) -> Type:
        assert self.progress is not None
        return self.stream.schema_.field(self.progress.on).type

    def _delay(self) -> Any:
        """The delay; on a type with a least unit, as many whole units as it has."""
        assert self.progress is not None
        delay, type = self.progress.delay_in(self._type.name), self._type
        return math.floor(Fraction(delay) * 10**type.scale) if type.name == "decimal" else delay

    def _raise(self, group: Group, value: Any) -> None:
        steps = self._marks.setdefault(group_key(group), [])
        if not steps or value > steps[-1][1]:
            self._raised.append(group_key(group))
            steps.append((len(self._raised), value))


def _or_least(known: Any, other: Any) -> Any:
    return other if known is None else known


class StreamMarks:
    """What a stream promises, of each of its fields that make progress."""

    def __init__(self, stream: Stream):
        entries: list[Progress | None] = [*stream.progressing] or [None]
        self._marks = [StreamMark(stream, entry) for entry in entries]
        self._punctuated = self._marks[entries.index(stream.punctuated)]

    def end(self) -> None:
        """Nothing comes any more."""
        for mark in self._marks:
            mark.ended = True

    def open(self, origin: str) -> None:
        """Wait for an origin from now on."""
        for mark in self._marks:
            mark.open(origin)

    def rest(self, origin: str) -> None:
        """Wait for an origin no more, until it brings something."""
        for mark in self._marks:
            mark.rest(origin)

    def take(self, row: Mapping[str, Any], origin: str | None = None) -> None:
        """Move after a tuple."""
        for mark in self._marks:
            mark.take(row, origin)

    def punctuate(self, value: Any, group: Group, origin: str | None = None) -> None:
        """Move the one that punctuations speak of."""
        self._punctuated.punctuate(value, group, origin)

    def tick(self, now_us: int) -> None:
        """Move to (now − lag) where there is a heartbeat."""
        for mark in self._marks:
            mark.tick(now_us)

    def promises(self) -> Promises:
        """What holds now, by field."""
        return {name: promise for mark in self._marks for name, promise in mark.promises().items()}

    def numbers(self) -> Promise:
        """What holds of the arrival numbers of its tuples."""
        return self._marks[0].numbers()

    def number_anew(self) -> None:
        """Number tuples from the next on."""
        self._marks[0].taken = 0


def least(marks: list[Any]) -> Any:
    """The least of marks; nothing is promised if one of them promises nothing."""
    return None if None in marks else min(marks)


def reaches(mark: Any, value: Any) -> bool:
    """Whether nothing below `value` comes any more."""
    return mark is not None and mark >= value


def passes(mark: Any, value: Any) -> bool:
    """Whether not even `value` itself comes any more."""
    return mark is not None and mark > value


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


def value_of(units: Any, type: Type) -> Any:
    """The value of a field, given in its units; None if the field can not hold it."""
    value = units
    try:
        if type.name.startswith("timestamp"):
            zone = UTC if type.name == "timestamp" else None
            value = datetime(1970, 1, 1, tzinfo=zone) + timedelta(microseconds=units)
        elif type.name == "date":
            value = date(1970, 1, 1) + timedelta(days=units)
        elif type.name == "decimal":
            value = Decimal(units).scaleb(-type.scale, _EXACT)
        return pa.array([value], type.arrow())[0].as_py()
    except (OverflowError, InvalidOperation, pa.ArrowInvalid):
        return None


def _clock(us: int, type: Type, unit: str) -> Any:
    """A time or a span of the clock in the units of a field; whole units where it has them."""
    if type.name.startswith("timestamp"):
        return us
    if type.name == "date":
        return us // 86_400_000_000
    one = {"s": Fraction(10**6), "ms": Fraction(10**3), "us": Fraction(1), "ns": Fraction(1, 1000)}
    if type.name in ("float", "double"):
        return us * one[unit].denominator / one[unit].numerator
    return math.floor(us * 10**type.scale / one[unit])
