"""Which values of a key a predicate can hold for: intervals, derived from SQL.

Values are compared as Spark compares them: NaN equals itself and is above all numbers, −0.0 equals
0.0, text goes by its bytes. Timestamps are microseconds and dates are days here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from auroral.continuous.sharing.constants import SLOT_TYPES
from auroral.continuous.sharing.predicates import Atoms, Names, NotShared, folded
from auroral.continuous.sharing.template import Atom
from auroral.errors import NetworkError, RunError
from auroral.network.types import Schema, Type
from auroral.sql.expressions import times
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Node
from auroral.sql.expressions.typed import OnlySparkError

_LAST_CHARACTER = 0x10FFFF


def can_be_key(type: Type) -> bool:
    """Whether history can be organised by values of a type."""
    return type.name in SLOT_TYPES


def comparable(value: Any) -> Any:
    """A Python value as it is compared here: times are numbers."""
    if isinstance(value, datetime):
        return times.micros(value)
    return times.days(value) if isinstance(value, date) else value


def comparable_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose values compare with those of intervals."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    if pa.types.is_date(column.type):
        return column.cast(pa.int32()).cast(pa.int64())
    return column.cast(pa.float64()) if pa.types.is_float32(column.type) else column


@dataclass(frozen=True)
class Interval:
    """The values from `low` to `high`; None means without limit.

    >>> Interval(3, 7).overlaps(7, 9), Interval(3, 7, closed_high=False).overlaps(7, 9)
    (True, False)
    """

    low: Any = None
    high: Any = None
    closed_low: bool = True
    closed_high: bool = True

    @property
    def is_point(self) -> bool:
        closed = self.closed_low and self.closed_high
        return self.low is not None and bool(self.low == self.high) and closed

    @property
    def is_empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        closed = self.closed_low and self.closed_high
        return bool(_above(self.low, self.high) or (_same(self.low, self.high) and not closed))

    @property
    def has_nan(self) -> bool:
        """Whether NaN, the greatest of all numbers, is in it."""
        return self.high is None or (_is_nan(self.high) and self.closed_high)

    def overlaps(self, least: Any, greatest: Any) -> bool:
        """Whether some value between two numbers, texts, … can be in it; these are not NaN."""
        if self.low is not None and (
            _above(self.low, greatest) or (self.low == greatest and not self.closed_low)
        ):
            return False
        return self.high is None or not (
            _above(least, self.high) or (least == self.high and not self.closed_high)
        )

    def intersection(self, other: Interval) -> Interval:
        low, closed_low = self.low, self.closed_low
        if low is None or (other.low is not None and _above(other.low, low)):
            low, closed_low = other.low, other.closed_low
        elif other.low is not None and _same(other.low, low):
            closed_low = closed_low and other.closed_low
        high, closed_high = self.high, self.closed_high
        if high is None or (other.high is not None and _above(high, other.high)):
            high, closed_high = other.high, other.closed_high
        elif other.high is not None and _same(other.high, high):
            closed_high = closed_high and other.closed_high
        return Interval(low, high, closed_low, closed_high)


@dataclass(frozen=True)
class KeyPredicate:
    """A key and intervals, one of which its value must be in; NULL is in none.

    What SQL says beyond that is not here: the rows found by it are a superset.

    >>> KeyPredicate("k", (Interval(1, 1), Interval(5))).matches([0, 1, None, 9])
    [False, True, False, True]
    """

    key: str
    intervals: tuple[Interval, ...]

    @cached_property
    def points(self) -> tuple[Any, ...] | None:
        """The values that are sought, if they are single ones."""
        if all(interval.is_point for interval in self.intervals):
            return tuple(interval.low for interval in self.intervals)
        return None

    def overlaps(self, least: Any, greatest: Any) -> bool:
        """Whether a value between two others can satisfy it."""
        return any(interval.overlaps(least, greatest) for interval in self.intervals)

    @property
    def has_nan(self) -> bool:
        return any(interval.has_nan for interval in self.intervals)

    def mask(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """For each value of the key's column whether it satisfies the predicate, never NULL."""
        values = comparable_column(column)
        if self.points is not None and not _has_nan_point(self.points):
            sought = pa.array(_with_both_zeros(self.points), values.type)
            return pc.is_in(values, value_set=sought, skip_nulls=True)
        masks = [_mask(values, interval) for interval in self.intervals]
        nothing = pa.chunked_array([pa.repeat(pa.scalar(False), len(values))])
        found = reduce(pc.or_, masks, nothing)
        return pc.fill_null(found, False)

    def matches(self, values: Sequence[Any]) -> list[bool]:
        """For each of some values whether it satisfies the predicate."""
        found: list[bool] = self.mask(pa.chunked_array([pa.array(values)])).to_pylist()
        return found

    def __str__(self) -> str:
        if not self.intervals:
            return f"nothing of {self.key}"
        if self.points is not None:
            count = len(self.points)
            return f"{count} {'value' if count == 1 else 'values'} of {self.key}"
        count = len(self.intervals)
        return f"{count} {'range' if count == 1 else 'ranges'} of {self.key}"


def key_predicate(where: str | Node, schema: Schema, key: str) -> KeyPredicate | None:
    """What a predicate over a schema demands of a key; None if it demands nothing.

    >>> reports = Schema.parse("sid int, pos int")
    >>> key_predicate("sid IN (3, 4) AND pos > 10 AND sid < 3.5", reports, "sid").intervals
    (Interval(low=3, high=3, closed_low=True, closed_high=True),)
    """
    field = schema.field(key)
    if not can_be_key(field.type):
        return None
    atoms = Atoms(Names([schema], {}))
    try:
        clauses = atoms.clauses(parse(where) if isinstance(where, str) else where)
    except (NotShared, OnlySparkError, NetworkError, RunError):
        return None
    demanded: tuple[Interval, ...] | None = None
    for leaves in clauses:
        allowed: list[Interval] = []
        for leaf in leaves:
            try:
                found = _allowed(atoms, atoms.atom(leaf, None), field.name)
            except (NotShared, OnlySparkError, NetworkError, RunError):
                found = None
            if found is None:
                break
            allowed += found
        else:
            demanded = _both(demanded, allowed)
    return None if demanded is None else KeyPredicate(field.name, demanded)


def _allowed(atoms: Atoms, atom: Atom, key: str) -> list[Interval] | None:
    """The intervals in which an atom can hold; None if it says nothing of the key."""
    if atom.attribute.field != key or atom.attribute.slots or atom.slot is None:
        return None
    slot = atoms.slots[atom.slot]
    constant = slot.finish([folded(tree) for tree in slot.trees])
    if constant is None:
        return []  # NULL satisfies nothing
    if atom.op == "in":
        return [Interval(value, value) for value in map(comparable, constant) if value is not None]
    value = comparable(constant)
    match atom.op:
        case "=":
            return [Interval(value, value)]
        case "<" | "<=":
            return [Interval(None, value, closed_high=atom.op == "<=")]
        case ">" | ">=":
            return [Interval(value, None, closed_low=atom.op == ">=")]
        case "prefix":
            return [_prefixed(value)]
    return None


def _prefixed(text: str) -> Interval:
    """The texts that begin with one."""
    kept = text.rstrip(chr(_LAST_CHARACTER))
    if not kept:
        return Interval(text, None)
    after = ord(kept[-1]) + 1
    after = 0xE000 if 0xD800 <= after < 0xE000 else after  # no text has surrogates
    return Interval(text, kept[:-1] + chr(after), closed_high=False)


def _both(one: tuple[Interval, ...] | None, other: Iterable[Interval]) -> tuple[Interval, ...]:
    several = tuple(other) if one is None else (a.intersection(b) for a in one for b in other)
    return tuple(dict.fromkeys(found for found in several if not found.is_empty))


def _mask(values: pa.ChunkedArray, interval: Interval) -> pa.ChunkedArray:
    found = pc.is_valid(values)
    floating = pa.types.is_floating(values.type)
    if _is_nan(interval.low):
        nan = pc.is_nan(values)
        return nan if interval.closed_low else pc.and_(nan, pc.invert(nan))
    if interval.low is not None:
        low = pa.scalar(interval.low, values.type)
        compare = pc.greater_equal if interval.closed_low else pc.greater
        found = pc.and_(found, compare(values, low))
    if interval.high is not None and not _is_nan(interval.high):
        high = pa.scalar(interval.high, values.type)
        compare = pc.less_equal if interval.closed_high else pc.less
        return pc.and_(found, compare(values, high))
    if floating:
        nan = pc.is_nan(values)
        return pc.or_(found, nan) if interval.has_nan else pc.and_(found, pc.invert(nan))
    return found


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _has_nan_point(points: Iterable[Any]) -> bool:
    return any(_is_nan(point) for point in points)


def _with_both_zeros(points: Sequence[Any]) -> list[Any]:
    """The same values; 0.0 is sought as −0.0 too."""
    zero = any(isinstance(point, float) and point == 0 for point in points)
    return [*points, 0.0, -0.0] if zero else list(points)


def _above(one: Any, other: Any) -> bool:
    """Whether one value is greater; NaN is the greatest."""
    if _is_nan(one) or _is_nan(other):
        return _is_nan(one) and not _is_nan(other)
    return bool(one > other)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or (_is_nan(one) and _is_nan(other))
