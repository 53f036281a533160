"""Values as functions of a row number: what the rate source fills its columns with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.errors import UsageError, closest, list_existing
from auroral.io.values import ColumnReader
from auroral.network.types import Field

Generate = Callable[[np.ndarray], pa.Array]
"""From row numbers (int64) to a column."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def scatter(rows: np.ndarray, seed: int) -> np.ndarray:
    """A uniform number in [0, 1) for each row, by splitmix64: any row can be asked for alone.

    >>> scatter(np.arange(3), 1).round(3).tolist() == scatter(np.arange(9), 1)[:3].round(3).tolist()
    True
    """
    with np.errstate(over="ignore"):
        z = (rows.astype(np.uint64) + np.uint64(seed & 0xFFFFFFFF) * _MIX[0]) * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _MIX[0]
        z = (z ^ (z >> np.uint64(27))) * _MIX[1]
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def generator(field: Field, spec: Any, seed: int, rate: float) -> Generate:
    """The generator a field's spec asks for, e.g. `{cycle: 10}`; by its type if there is none."""
    if spec is None:
        return _default(field, seed, rate)
    if not isinstance(spec, Mapping) or len(spec) != 1 or next(iter(spec)) not in _KINDS:
        named = next(iter(spec), "") if isinstance(spec, Mapping) else str(spec)
        raise UsageError(
            "BAD_GENERATOR",
            f"field {field.name}: expected one generator with its argument, found {spec!r};"
            f" {list_existing(_KINDS)}",
            hint=closest(str(named), _KINDS),
        )
    kind, argument = next(iter(spec.items()))
    try:
        values = _KINDS[kind](argument, seed)
        values(np.zeros(1, dtype=np.int64))
    except (TypeError, ValueError, ZeroDivisionError):
        raise UsageError(
            "BAD_GENERATOR", f"field {field.name}: {kind} cannot take {argument!r}"
        ) from None
    return _typed(field, values)


def _cycle(size: Any, _: int) -> Callable[[np.ndarray], Any]:
    if int(size) < 1:
        raise ValueError
    return lambda rows: rows % int(size)


def _step(argument: Any, _: int) -> Callable[[np.ndarray], Any]:
    start, step = argument if isinstance(argument, list) else (0, argument)
    return lambda rows: rows * step + start


def _normal(argument: Any, seed: int) -> Callable[[np.ndarray], Any]:
    mean, deviation = (float(v) for v in argument)

    def values(rows: np.ndarray) -> Any:
        radius = np.sqrt(-2 * np.log1p(-scatter(rows, seed)))
        return mean + deviation * radius * np.cos(2 * np.pi * scatter(rows, seed + 1))

    return values


def _uniform(argument: Any, seed: int) -> Callable[[np.ndarray], Any]:
    low, high = (float(v) for v in argument)
    return lambda rows: low + (high - low) * scatter(rows, seed)


def _choice(argument: Any, seed: int) -> Callable[[np.ndarray], Any]:
    options = list(argument)
    if not options or isinstance(argument, str):
        raise ValueError
    return lambda rows: [options[int(i)] for i in scatter(rows, seed) * len(options)]


def _constant(argument: Any, _: int) -> Callable[[np.ndarray], Any]:
    return lambda rows: [argument] * len(rows)


_KINDS: dict[str, Callable[[Any, int], Callable[[np.ndarray], Any]]] = {
    "choice": _choice,
    "constant": _constant,
    "cycle": _cycle,
    "normal": _normal,
    "step": _step,
    "uniform": _uniform,
}


def _typed(field: Field, values: Callable[[np.ndarray], Any]) -> Generate:
    """Bring generated values to the field's type; numbers are rounded down to integers."""
    column = ColumnReader(field.type)

    def generate(rows: np.ndarray) -> pa.Array:
        found = values(rows)
        if isinstance(found, np.ndarray) and field.type.name in ("float", "double"):
            return pa.array(found).cast(column.arrow)
        if isinstance(found, np.ndarray) and field.type.is_integral:
            return pa.array(np.floor(found).astype(np.int64)).cast(column.arrow)
        if isinstance(found, np.ndarray) and field.type.name.startswith("timestamp"):
            return pa.array(np.rint(found * 1e6).astype(np.int64)).cast(column.arrow)
        if isinstance(found, np.ndarray) and field.type.name == "date":
            return pa.array(np.floor(found).astype(np.int32)).cast(column.arrow)
        plain = found.tolist() if isinstance(found, np.ndarray) else found
        if field.type.name == "string":
            plain = [str(value) for value in plain]
        array, wrong = column.read(plain)
        if wrong:
            raise UsageError("BAD_GENERATOR", f"field {field.name}: {next(iter(wrong.values()))}")
        return array

    return generate


def _default(field: Field, seed: int, rate: float) -> Generate:
    """What suits the type: counting integers, uniform fractions, time at the rate from 1970."""
    name, arrow = field.type.name, field.type.arrow()
    if field.type.is_integral:
        bound = 1 << (arrow.bit_width - 1)
        return lambda rows: pa.array(rows % bound if bound < 1 << 63 else rows).cast(arrow)
    if name in ("float", "double"):
        return _typed(field, _uniform((0, 1), seed))
    if name == "boolean":
        return lambda rows: pa.array(scatter(rows, seed) < 0.5)
    if name.startswith("timestamp"):
        return _typed(field, lambda rows: rows / rate)
    if name == "date":
        return _typed(field, lambda rows: rows % 3650)
    if name == "decimal":
        bound = 10 ** min(field.type.precision - field.type.scale, 9)
        return lambda rows: pa.array((rows % bound).tolist(), arrow)
    if name == "string":
        return lambda rows: pa.array([f"{field.name}{i}" for i in (rows % 100).tolist()], arrow)
    if name == "binary":
        return lambda rows: pa.array([i.to_bytes(8, "big") for i in rows.tolist()], arrow)
    return lambda rows: pa.nulls(len(rows), arrow)
