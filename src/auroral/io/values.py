"""Python values to typed columns: how rows given as dicts, tuples or JSON are read."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.io.readers.text import Parsed, expected, parse
from auroral.network.types import Type

Convert = Callable[[Any], Any]
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NONE = type(None)
_ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError)

# Python types whose values Arrow converts exactly, or raises.
_DIRECT: dict[str, frozenset[type]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), frozenset((int, _NONE))),
    **dict.fromkeys(("float", "double"), frozenset((float, int, _NONE))),
    "boolean": frozenset((bool, _NONE)),
    "string": frozenset((str, _NONE)),
    "binary": frozenset((bytes, _NONE)),
    "date": frozenset((dt.date, _NONE)),
    "timestamp": frozenset((dt.datetime, _NONE)),
    "decimal": frozenset((Decimal, int, _NONE)),
}
_TEXTUAL = frozenset(("binary", "date", "timestamp", "timestamp_ntz"))
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_STRINGS = frozenset((str, _NONE))


class MisfitError(ValueError):
    """A value that does not fit; says why."""


def exact_number(value: Any, kind: str) -> Any:
    """A whole number that came as text because JSON would not be exact; else the value.

    >>> exact_number("9007199254740993", "bigint"), exact_number("7", "string")
    (9007199254740993, '7')
    """
    if kind == "bigint" and isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    return value


class ColumnReader:
    """Reads one field's values; made once, used for every batch.

    >>> ColumnReader(Type("int")).read([1, None, 2.5])[1]
    {2: 'expected int, found 2.5'}
    """

    def __init__(self, type: Type, *, loose: bool = False):
        """Of `loose` columns, structs may have fields that are not declared; they are dropped."""
        self.type = type
        self.arrow = type.arrow()
        self._direct = _DIRECT.get(type.name, frozenset())
        self._convert = converter(type, loose)

    def read(self, values: Sequence[Any]) -> Parsed:
        """The values as an Arrow array, and why some of them do not fit."""
        kinds = set(map(type, values))
        try:
            if kinds <= self._direct:
                return pa.array(values, self.arrow), {}
            if kinds <= _STRINGS and self.type.name in _TEXTUAL:
                return parse(pa.array(values, pa.string()), self.type)
        except _ARROW_ERRORS:
            pass
        return self._one_by_one(values)

    def _one_by_one(self, values: Sequence[Any]) -> Parsed:
        found: list[Any] = []
        wrong: dict[int, str] = {}
        for index, value in enumerate(values):
            try:
                found.append(None if value is None else self._convert(value))
            except MisfitError as misfit:
                wrong[index] = str(misfit)
                found.append(None)
        return pa.array(found, self.arrow), wrong


def converter(type: Type, loose: bool = False) -> Convert:
    """A function from a value that is not None to what Arrow takes for `type`, or `MisfitError`."""
    if type.is_integral:
        return _integer(type)
    if type.name in ("float", "double"):
        return _double(type)
    if type.name == "decimal":
        return _decimal(type)
    if type.name == "array":
        return _array(type, loose)
    if type.name == "map":
        return _map(type, loose)
    if type.name == "struct":
        return _struct(type, loose)
    return _atom(type, {"boolean": _boolean, "string": _string}.get(type.name, _textual(type)))


def _atom(type: Type, convert: Convert) -> Convert:
    """Give the common reason for every way in which a value cannot be converted."""

    def read(value: Any) -> Any:
        try:
            return convert(value.item() if isinstance(value, np.generic) else value)
        except (TypeError, ValueError, ArithmeticError, pa.ArrowException):
            raise MisfitError(expected(type, value)) from None

    return read


def _integer(type: Type) -> Convert:
    bound = 1 << (type.arrow().bit_width - 1)

    def convert(value: Any) -> int:
        if isinstance(value, (float, Decimal)):
            if value != int(value):
                raise ValueError
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not -bound <= value < bound:
            raise ValueError
        return value

    return _atom(type, convert)


def _double(type: Type) -> Convert:
    def convert(value: Any) -> float:
        if isinstance(value, str) and value in _SPECIAL:
            return _SPECIAL[value]
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
            raise TypeError
        return float(value)

    return _atom(type, convert)


def _decimal(type: Type) -> Convert:
    arrow = type.arrow()

    def convert(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
            raise TypeError
        # A float's shortest text is what its author wrote.
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        pa.scalar(exact, arrow)
        return exact

    return _atom(type, convert)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()
    return value


def _textual(type: Type) -> Convert:
    """Binary, dates and timestamps: themselves, or their text."""

    def convert(value: Any) -> Any:
        if isinstance(value, str):
            read, wrong = parse(pa.array([value], pa.string()), type)
            if wrong:
                raise ValueError
            return None if read[0].as_py() is None else getattr(read[0], "value", read[0].as_py())
        if type.name == "binary":
            if not isinstance(value, (bytes, bytearray)):
                raise TypeError
            return bytes(value)
        if type.name == "date":
            if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
                raise TypeError
            return value
        return _microseconds(value, type)

    return convert


def _microseconds(value: Any, type: Type) -> int:
    if not isinstance(value, dt.datetime) or getattr(value, "nanosecond", False):
        raise TypeError
    if value.tzinfo is not None:
        if type.name == "timestamp_ntz":
            raise TypeError
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    since: dt.timedelta = value - _EPOCH
    return since // _MICROSECOND


def _array(type: Type, loose: bool) -> Convert:
    element = converter(type.children[0].type, loose)

    def convert(value: Any) -> list[Any]:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if not isinstance(value, (list, tuple)):
            raise MisfitError(expected(type, value))
        return [None if v is None else element(v) for v in value]

    return convert


def _map(type: Type, loose: bool) -> Convert:
    key, item = (converter(child.type, loose) for child in type.children)

    def convert(value: Any) -> list[tuple[Any, Any]]:
        pairs = list(value.items()) if isinstance(value, Mapping) else value
        if not isinstance(pairs, (list, tuple)):
            raise MisfitError(expected(type, value))
        found = []
        for pair in pairs:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2 or pair[0] is None:
                raise MisfitError(expected(type, value))
            found.append((key(pair[0]), None if pair[1] is None else item(pair[1])))
        return found

    return convert


def _struct(type: Type, loose: bool) -> Convert:
    parts = {child.name: converter(child.type, loose) for child in type.children}

    def convert(value: Any) -> dict[str, Any]:
        if isinstance(value, tuple) and len(value) == len(parts):
            value = dict(zip(parts, value, strict=True))
        if not isinstance(value, Mapping) or not (loose or value.keys() <= parts.keys()):
            raise MisfitError(expected(type, value))
        known = ((name, v) for name, v in value.items() if name in parts)
        return {name: None if v is None else parts[name](v) for name, v in known}

    return convert
