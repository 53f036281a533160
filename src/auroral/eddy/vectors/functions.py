"""The functions and operators that are computed for whole columns, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.eddy.vectors import operators
from auroral.eddy.vectors.batch import TupleBatch
from auroral.eddy.vectors.computed import (
    Computed,
    cast,
    choose,
    constant,
    literal_decimals,
    logic,
    sides,
    strict,
)
from auroral.eddy.vectors.vector import Vector, both, from_arrow, from_python, joined
from auroral.network.types import Type
from auroral.sql.expressions.coercion import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    INT,
    STRING,
    TIMES,
    VOID,
    common,
    is_interval,
    tightest,
)

Build = Callable[[Sequence[Computed]], Computed | None]
FUNCTIONS: dict[str, Build] = {}
_DAY = 86_400_000_000
_ONE_DAY = Type("interval_dt", 0, 0)
_MANY = 4


def _enter(names: str) -> Callable[[Build], Build]:
    def enter(build: Build) -> Build:
        FUNCTIONS.update(dict.fromkeys(names.split(), build))
        return build

    return enter


def _comparison(name: str) -> None:
    @_enter(name)
    def build(args: Sequence[Computed]) -> Computed | None:
        found = sides(args, name in ("=", "<>"))
        if found is None:
            return None
        left, right, type = found
        if type == VOID:
            return constant(None, BOOLEAN)
        return strict(BOOLEAN, (left, right), lambda a, b: operators.compare(name, a, b))


for _name in ("=", "<>", "<", "<=", ">", ">="):
    _comparison(_name)


@_enter("<=> equal_null")
def _same(args: Sequence[Computed]) -> Computed | None:
    found = sides(args, True)
    if found is None:
        return None
    left, right, type = found
    if type == VOID:
        return constant(True, BOOLEAN)
    return strict(BOOLEAN, (left, right), operators.same)


@_enter("and")
def _and(args: Sequence[Computed]) -> Computed:
    return logic(args, False)


@_enter("or")
def _or(args: Sequence[Computed]) -> Computed:
    return logic(args, True)


@_enter("not")
def _not(args: Sequence[Computed]) -> Computed:
    arg = cast(args[0], BOOLEAN)
    return strict(BOOLEAN, [arg], lambda v: Vector(BOOLEAN, ~v.data, v.valid))


@_enter("isnull isunknown")
def _isnull(args: Sequence[Computed]) -> Computed:
    return strict(BOOLEAN, args, lambda v: Vector(BOOLEAN, v.nulls()))


@_enter("isnotnull")
def _isnotnull(args: Sequence[Computed]) -> Computed:
    return strict(BOOLEAN, args, lambda v: Vector(BOOLEAN, ~v.nulls()))


@_enter("in")
def _in(args: Sequence[Computed]) -> Computed | None:
    type = common([arg.type for arg in args])
    if type is None or not operators.can_compare(type) or type == VOID:
        return None
    value, *options = [cast(arg, type) for arg in args]
    exact = type.is_integral or type.name in ("string", "date")
    if exact and len(options) > _MANY and all(option.constant for option in options):
        return _in_set(value, [option.value for option in options], type)

    def run(*vectors: Vector) -> Vector:
        sought = vectors[0]
        found = [operators.compare("=", sought, option) for option in vectors[1:]]
        nulls = sought.nulls()
        hit, unknown = np.zeros(len(nulls), bool), nulls
        for equal in found:
            hit = hit | (equal.data & ~equal.nulls())
            unknown = unknown | equal.nulls()
        return Vector(BOOLEAN, hit, hit | ~unknown)

    return strict(BOOLEAN, [value, *options], run)


def _in_set(value: Computed, options: Sequence[Any], type: Type) -> Computed:
    found = [option for option in options if option is not None]
    known = pa.array(found, type.arrow())
    unknown = len(found) < len(options)

    def run(vector: Vector) -> Vector:
        hit = pc.is_in(vector.arrow(), known).to_numpy(zero_copy_only=False)
        nulls = vector.nulls()
        hit = hit & ~nulls
        return Vector(BOOLEAN, hit, hit if unknown else ~nulls)

    return strict(BOOLEAN, [value], run)


def _arithmetic(name: str) -> None:
    @_enter(f"{name} mod" if name == "%" else name)
    def build(args: Sequence[Computed]) -> Computed | None:
        if any(arg.type.name in TIMES or is_interval(arg.type) for arg in args):
            return _timely(name, args) if name in ("+", "-") else None
        found = _numbers(args, name == "/")
        if found is None:
            return None
        left, right = found
        return strict(left.type, (left, right), lambda a, b: operators.calculate(name, a, b))


for _name in ("+", "-", "*", "/", "%"):
    _arithmetic(_name)


def _numbers(args: Sequence[Computed], divide: bool) -> tuple[Computed, Computed] | None:
    """Both sides as integers or floats of one type; None of decimals."""
    left, right = (cast(arg, DOUBLE) if arg.type == STRING else arg for arg in args)
    names = {left.type.name, right.type.name}
    if "decimal" in names:
        if not names & {"float", "double"}:
            return None
        left, right = literal_decimals(left, right)
        return cast(left, DOUBLE), cast(right, DOUBLE)
    if divide:
        return cast(left, DOUBLE), cast(right, DOUBLE)
    type = tightest(left.type, right.type)
    if type is None or type == VOID:
        return None
    return cast(left, type), cast(right, type)


@_enter("div")
def _div(args: Sequence[Computed]) -> Computed | None:
    if not all(arg.type.is_integral for arg in args):
        return None
    return strict(BIGINT, [cast(arg, BIGINT) for arg in args], operators.divide_whole)


def _timely(name: str, args: Sequence[Computed]) -> Computed | None:
    """Dates and timestamps moved by days or an interval, and their distances."""
    left, right = args
    if name == "+" and (is_interval(left.type) or left.type.is_numeric):
        left, right = right, left
    sign = 1 if name == "+" else -1
    start, by = left.type, right.type
    if start.name in ("timestamp", "timestamp_ntz"):
        if by.name == "interval_dt":
            return _moved(start, left, right, sign)
        if by == start and name == "-":
            return _moved(DAY_TO_SECOND, left, right, -1)
    if start == DATE:
        if by.name in ("tinyint", "smallint", "int"):
            return _moved(DATE, left, cast(right, INT), sign)
        if by == _ONE_DAY:
            days = strict(INT, [right], lambda v: Vector(INT, _whole_days(v.data), v.valid))
            return _moved(DATE, left, days, sign)
        if by == DATE and name == "-":
            return strict(_ONE_DAY, (left, right), _days_apart)
    return None


def _moved(type: Type, start: Computed, by: Computed, sign: int) -> Computed:
    def run(a: Vector, b: Vector) -> Vector:
        data = a.data + b.data if sign > 0 else a.data - b.data
        return Vector(type, data, both(a.valid, b.valid))

    return strict(type, (start, by), run)


def _whole_days(micros: Any) -> Any:
    return (micros // _DAY).astype(np.int32)


def _days_apart(a: Vector, b: Vector) -> Vector:
    days = a.data.astype(np.int64) - b.data
    return Vector(_ONE_DAY, days * _DAY, both(a.valid, b.valid))


@_enter("negative")
def _negative(args: Sequence[Computed]) -> Computed | None:
    plain = args[0].type.is_numeric and args[0].type.name != "decimal"
    return strict(args[0].type, args, operators.negate) if plain else None


@_enter("positive")
def _positive(args: Sequence[Computed]) -> Computed | None:
    return args[0] if args[0].type.is_numeric else None


@_enter("abs")
def _abs(args: Sequence[Computed]) -> Computed | None:
    plain = args[0].type.is_numeric and args[0].type.name != "decimal"
    return strict(args[0].type, args, operators.absolute) if plain else None


@_enter("length char_length character_length len")
def _length(args: Sequence[Computed]) -> Computed | None:
    if args[0].type != STRING:
        return None
    return strict(INT, args, lambda v: from_arrow(pc.utf8_length(v.data), INT))


def _cased(names: str, change: Any, each: Callable[[str], str]) -> None:
    @_enter(names)
    def build(args: Sequence[Computed]) -> Computed | None:
        if args[0].type != STRING:
            return None

        def run(vector: Vector) -> Vector:
            found: Vector | None = change(vector)
            if found is not None:
                return found
            values = [None if v is None else each(v) for v in vector.python()]
            return from_python(values, STRING)

        return strict(STRING, args, run)


_cased("upper ucase", operators.upper, str.upper)
_cased("lower lcase", operators.lower, str.lower)


@_enter("substring substr")
def _substring(args: Sequence[Computed]) -> Computed | None:
    text, *places = args
    plain = all(p.literal and p.type == INT and p.value >= 0 for p in places)
    if text.type != STRING or not plain:
        return None
    start = max(places[0].value - 1, 0)
    stop = start + places[1].value if len(places) > 1 else None

    def run(vector: Vector) -> Vector:
        return Vector(STRING, pc.utf8_slice_codeunits(vector.data, start, stop))

    return strict(STRING, [text], run)


@_enter("concat")
def _concat(args: Sequence[Computed]) -> Computed | None:
    if not args or any(arg.type != STRING and not arg.type.is_integral for arg in args):
        return None
    parts = [cast(arg, STRING) for arg in args]

    def run(batch: TupleBatch) -> Vector:
        arrays = [part.run(batch).spread(batch.rows).data for part in parts]
        joined_up = pc.binary_join_element_wise(*arrays, "", null_handling="emit_null")
        return Vector(STRING, joined_up)

    return Computed(STRING, run, fallible=any(part.fallible for part in parts))


@_enter("like")
def _like(args: Sequence[Computed]) -> Computed | None:
    text, pattern, *escape = args
    if text.type != STRING or escape or not pattern.constant or pattern.type != STRING:
        return None
    shape = like_shape(pattern.value) if pattern.value is not None else None
    if shape is None:
        return None
    return strict(BOOLEAN, [text], lambda vector: operators.like(vector, *shape))


def like_shape(pattern: str) -> tuple[str, str] | None:
    """What a pattern with % at its ends only asks for: equal, prefix, suffix or within."""
    body = pattern.strip("%")
    if "\\" in pattern or "_" in body or "%" in body:
        return None
    first, last = pattern.startswith("%"), pattern.endswith("%")
    kind = {(False, False): "equal", (False, True): "prefix", (True, False): "suffix"}
    return kind.get((first, last), "within"), body


@_enter("coalesce nvl ifnull")
def _coalesce(args: Sequence[Computed]) -> Computed | None:
    type = common([arg.type for arg in args])
    if type is None or type == VOID:
        return None
    runs = [cast(arg, type) for arg in args]

    def run(batch: TupleBatch) -> Vector:
        left = np.arange(batch.rows)
        parts: list[tuple[Any, Vector]] = []
        for place, part in enumerate(runs, 1):
            found = part.run(batch.take(left)).spread(len(left))
            chosen = ~found.nulls() if place < len(runs) else np.ones(len(left), bool)
            if place == 1 and chosen.all():
                return found
            at = pa.array(np.flatnonzero(chosen))
            parts.append((left[chosen], from_arrow(found.arrow().take(at), type)))
            left = left[~chosen]
        return joined(parts, batch.rows, type)

    return Computed(type, run, fallible=any(arg.fallible for arg in runs))


@_enter("if")
def _if(args: Sequence[Computed]) -> Computed | None:
    if args[0].type != BOOLEAN:
        return None
    return choose([(args[0], args[1])], args[2])
