"""CAST and TRY_CAST with Spark's meaning when ANSI mode is off: what fails becomes NULL."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from auroral.network.types import Type
from auroral.sql.expressions import times
from auroral.sql.expressions.numbers import (
    LIMITS,
    WIDE,
    decimal_of,
    float32,
    float_text,
    saturate,
    to_decimal,
    truncated,
    wrap,
)

Converter = Callable[[Any], Any]

_INTEGER = re.compile(r"[+-]?[0-9]*(\.[0-9]*)?")
_EXACT_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEX_FLOAT = re.compile(r"([+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+)[fFdD]?")
# BigDecimal takes the digits of every script.
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORDS = {"t": True, "true": True, "y": True, "yes": True, "1": True}
_WORDS |= {"f": False, "false": False, "n": False, "no": False, "0": False}
_INFINITE = {"inf": math.inf, "+inf": math.inf, "infinity": math.inf, "+infinity": math.inf}
_INFINITE |= {"-inf": -math.inf, "-infinity": -math.inf, "nan": math.nan}
_TIMES = ("date", "timestamp", "timestamp_ntz")


def can_cast(source: Type, to: Type, attempt: bool = False) -> bool:
    """Whether Spark has the cast; TRY_CAST (`attempt`) allows what ANSI mode allows."""
    a, b = source.name, to.name
    if source == to or a == "void" or b == "string":
        return not a.startswith("interval")
    if a.startswith("interval") or b.startswith("interval"):
        return a == b
    if {a, b} & {"array", "map", "struct"}:
        return (
            a == b
            and len(source.children) == len(to.children)
            and all(
                can_cast(c.type, d.type, attempt)
                for c, d in zip(source.children, to.children, strict=True)
            )
            and (a != "map" or not _may_fail(source.children[0].type, to.children[0].type))
        )
    if b == "binary":
        return a == "string" or (source.is_integral and not attempt)
    if b == "boolean":
        return a == "string" or source.is_numeric or (a in ("date", "timestamp") and not attempt)
    if b == "timestamp":
        return a in ("string", *_TIMES) or source.is_numeric or (a == "boolean" and not attempt)
    if b in ("date", "timestamp_ntz"):
        return a in ("string", *_TIMES)
    return (
        a in ("string", "boolean", "timestamp")
        or source.is_numeric
        or (a == "date" and not attempt)
    )


def _may_fail(source: Type, to: Type) -> bool:
    """Whether the cast can make NULL of a value, which a map's key must not become."""
    if source == to or to.name == "string":
        return False
    if source.name == "string":
        return to.name != "binary"
    if to.name == "decimal":
        digits = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20, "boolean": 1}
        whole = digits.get(source.name, source.precision - source.scale)
        fits = to.precision - to.scale >= whole and source.name not in ("float", "double")
        return not (fits and to.scale >= source.scale)
    return source.name in ("float", "double", "date") and to.name in ("timestamp", *LIMITS)


def cast_value(value: Any, source: Type, to: Type) -> Any:
    """Cast one value; None if it is NULL or does not fit."""
    return None if value is None else converter(source, to)(value)


def converter(source: Type, to: Type, attempt: bool = False) -> Converter:
    """The function that casts a value that is not NULL."""
    if source == to or source.name.startswith("interval"):
        return lambda value: value
    if source.name == "void":
        return never
    name = to.name
    if name == "string":
        if attempt and source.name == "decimal":
            return "{:f}".format
        return text_of(source)
    if name in LIMITS:
        return _to_integer(source, name, attempt)
    if name == "double":
        return _to_double(source)
    if name == "float":
        return _to_float(source)
    if name == "decimal":
        return _to_decimal(source, to)
    if name == "boolean":
        return _to_boolean(source)
    if name in _TIMES:
        return _to_time(source, name)
    if name == "binary":
        return _to_binary(source)
    return _to_structure(source, to, attempt)


def never(_: Any) -> None:
    """The cast that has no result, such as a date as a number."""


def nullable(convert: Converter) -> Converter:
    """The same function, with NULL for NULL."""
    return lambda value: None if value is None else convert(value)


def _to_integer(source: Type, name: str, attempt: bool) -> Converter:
    low, high = LIMITS[name]
    if source.name == "string":
        pattern = _EXACT_INTEGER if attempt else _INTEGER

        def parse(text: str) -> int | None:
            text = text.strip(times.BLANK)
            if not text or text in "+-" or not pattern.fullmatch(text):
                return None
            digits = text.partition(".")[0]
            value = int(digits) if digits.strip("+-") else 0
            return value if low <= value <= high else None

        return parse
    if source.name == "date":
        return never
    if source.name == "timestamp":

        def seconds(value: datetime) -> int | None:
            found = times.micros(value) // 1_000_000
            return found if low <= found <= high else None

        return seconds
    if attempt:

        def exact(value: Any) -> int | None:
            if isinstance(value, float) and not math.isfinite(value):
                return None
            found = int(value)
            if found == high + 1 and name == "bigint" and isinstance(value, float):
                return high
            return found if low <= found <= high else None

        return exact
    if source.name in ("float", "double"):
        if name == "bigint":
            return lambda value: saturate(value, "bigint")
        return lambda value: wrap(saturate(value, "int"), name)
    if source.name == "decimal":
        return lambda value: wrap(truncated(value), name)
    return lambda value: wrap(int(value), name)


def _parse_float(text: str, parse: Callable[[str], float]) -> float | None:
    trimmed = text.strip("".join(map(chr, range(33))))
    match = _FLOAT.fullmatch(trimmed)
    if match:
        return parse(match[1])
    if match := _HEX_FLOAT.fullmatch(trimmed):
        try:
            return float.fromhex(match[1])
        except (ValueError, OverflowError):
            return None
    return _INFINITE.get(trimmed.lower())


def _to_double(source: Type) -> Converter:
    if source.name == "string":
        return lambda text: _parse_float(text, float)
    if source.name == "date":
        return never
    if source.name == "timestamp":
        return lambda value: times.micros(value) / 1e6
    return float


def _to_float(source: Type) -> Converter:
    if source.name == "string":

        def parse(text: str) -> float | None:
            found = _parse_float(text, lambda digits: float32(Decimal(digits)))
            return None if found is None else float32(found)

        return parse
    if source.name == "date":
        return never
    if source.name == "timestamp":
        return lambda value: float32(times.micros(value) / 1e6)
    return float32


def _to_decimal(source: Type, to: Type) -> Converter:
    if source.name == "string":

        def parse(text: str) -> Decimal | None:
            text = text.strip(times.BLANK)
            if not _DECIMAL.fullmatch(text):
                return None
            try:
                return to_decimal(Decimal(text), to)
            except InvalidOperation:
                return None

        return parse
    if source.name in ("float", "double"):
        return lambda v: to_decimal(decimal_of(v), to) if math.isfinite(v) else None
    if source.name == "date":
        return never
    if source.name == "timestamp":
        return lambda value: to_decimal(Decimal(times.micros(value)).scaleb(-6), to)
    if source.name == "decimal":
        return lambda value: to_decimal(value, to)
    return lambda value: to_decimal(Decimal(int(value)), to)


def _to_boolean(source: Type) -> Converter:
    if source.name == "string":
        return lambda text: _WORDS.get(text.strip(times.BLANK).lower())
    if source.name == "date":
        return never
    if source.name == "timestamp":
        return lambda value: times.micros(value) != 0
    return lambda value: value != 0


def _to_time(source: Type, name: str) -> Converter:
    naive = name == "timestamp_ntz"
    if source.name == "string":
        if name == "date":
            return times.parse_date
        return lambda text: times.parse_timestamp(text, naive=naive)
    if source.name == "date":
        return lambda value: times.midnight(value, naive=naive)
    if name == "date":
        return lambda value: value.date()
    if source.name.startswith("timestamp"):
        return lambda value: times.from_micros(times.micros(value), naive=naive)
    if source.name == "boolean":
        return lambda value: times.from_micros(int(value))
    if source.name in ("float", "double"):
        return lambda v: (
            times.from_micros(saturate(v * 1e6, "bigint")) if math.isfinite(v) else None
        )
    if source.name == "decimal":
        return lambda value: times.from_micros(truncated(WIDE.multiply(value, Decimal(1_000_000))))
    return lambda value: times.from_micros(value * 1_000_000)


def _to_binary(source: Type) -> Converter:
    if source.name == "string":
        return lambda text: text.encode("utf-8", "surrogatepass")
    size = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8}[source.name]
    return lambda value: value.to_bytes(size, "big", signed=True)


def _to_structure(source: Type, to: Type, attempt: bool) -> Converter:
    parts = [
        nullable(converter(a.type, b.type, attempt))
        for a, b in zip(source.children, to.children, strict=True)
    ]
    if to.name == "array":
        return lambda value: [parts[0](item) for item in value]
    if to.name == "map":
        return lambda value: {parts[0](k): parts[1](v) for k, v in value.items()}
    names = [child.name for child in to.children]
    return lambda value: {
        name: part(item) for name, part, item in zip(names, parts, value.values(), strict=True)
    }


def text_of(source: Type) -> Converter:
    """How a value of this type reads as a string."""
    name = source.name
    if name == "boolean":
        return lambda value: "true" if value else "false"
    if name in ("float", "double"):
        return lambda value: float_text(value, single=name == "float")
    if name == "binary":
        return lambda value: value.decode("utf-8", "replace")
    if name == "date":
        return date.isoformat
    if name in ("timestamp", "timestamp_ntz"):
        return times.timestamp_text
    if name in ("array", "map", "struct"):
        return _structure_text(source)
    return str


def _structure_text(source: Type) -> Converter:
    parts = [text_of(child.type) for child in source.children]

    def text(part: Converter, value: Any) -> str:
        return "null" if value is None else str(part(value))

    if source.name == "array":
        return lambda value: f"[{', '.join(text(parts[0], item) for item in value)}]"
    if source.name == "map":
        return lambda value: (
            "{"
            + ", ".join(f"{text(parts[0], k)} -> {text(parts[1], v)}" for k, v in value.items())
            + "}"
        )
    return lambda value: (
        "{" + ", ".join(text(p, v) for p, v in zip(parts, value.values(), strict=True)) + "}"
    )
