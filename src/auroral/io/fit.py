"""Arrow columns of a nearby type to the declared type, without loss or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as at

from auroral.errors import UsageError, closest, list_existing
from auroral.io.readers.text import Parsed
from auroral.io.values import ColumnReader
from auroral.network.types import Field, Schema, Type

HIDDEN = ("_at", "_punctuation")
"""Columns that every input may have besides the fields of its schema."""
Extra = Literal["reject", "ignore", "keep"]
"""What happens to a row with fields that the schema does not have."""
KEPT = "_extra"
"""The field that receives the other fields as a JSON object, with `keep`."""


def given_by(schema: Schema, extra: Any) -> Schema:
    """The fields that an input gives itself: all, but for `_extra` if the others are kept there.

    >>> print(given_by(Schema.parse("a int, _extra string"), "keep"))
    a int
    """
    if extra not in get_args(Extra):
        allowed = ", ".join(get_args(Extra))
        raise UsageError("BAD_OPTION", f"extra: expected one of {allowed}, found {extra!r}")
    if extra != "keep":
        return schema
    if KEPT not in schema or schema.field(KEPT).type.name != "string":
        raise UsageError(
            "BAD_OPTION",
            f"extra: keep needs a field to keep the others in, {KEPT} string; the schema is"
            f" {schema}",
            hint=f"add {KEPT}: string to the schema of the stream",
        )
    return Schema(tuple(field for field in schema if field.name.lower() != KEPT))


def match_columns(found: Sequence[str], schema: Schema) -> dict[str, int]:
    """Where each field, `_at` and `_punctuation` is among `found`: exactly, else in any case.

    >>> match_columns(["B", "_at", "a"], Schema.parse("a int, b int"))
    {'a': 2, 'b': 0, '_at': 1}
    """
    lower = [name.lower() for name in found]
    places: dict[str, int] = {}
    for name in (*schema.names, *HIDDEN):
        if name in found:
            places[name] = found.index(name)
        elif name.lower() in lower:
            places[name] = lower.index(name.lower())
    return places


def misplaced(
    found: Sequence[str], schema: Schema, places: dict[str, int], extra: Extra = "reject"
) -> str | None:
    """Say which columns are missing, unknown or there twice; None if they fit."""
    missing = [name for name in schema.names if name not in places]
    taken = set(places.values())
    rest = [name for index, name in enumerate(found) if index not in taken]
    twice = [name for name in rest if name.lower() in {f.lower() for f in places}]
    unknown = [name for name in rest if name not in twice]
    if extra == "keep":
        twice += sorted({name for name in unknown if unknown.count(name) > 1})
    if extra != "reject":
        unknown = []
    problems = [
        f"{what} {', '.join(names)}"
        for what, names in (("missing", missing), ("unknown", unknown), ("twice", twice))
        if names
    ]
    return "; ".join(problems) or None


def others(found: Sequence[str], places: dict[str, int]) -> list[int]:
    """The columns that are neither fields nor hidden."""
    taken = set(places.values())
    return [index for index in range(len(found)) if index not in taken]


def fit_columns(table: pa.Table, schema: Schema, extra: Extra = "reject") -> list[Parsed]:
    """The schema's columns in order, each with the rows that do not fit and why.

    Zero-copy where the types already match; an error where a type cannot fit at all.
    """
    names = table.column_names
    places = match_columns(names, schema)
    problem = misplaced(names, schema, places, extra)
    if problem:
        unknown = [n for n in names if n not in schema and n not in HIDDEN]
        raise UsageError(
            "BAD_BATCH",
            f"the columns do not fit: {problem}; expected {schema}, {list_existing(names)}",
            hint=closest(unknown[0], schema.names) if unknown else None,
        )
    return [fit(table.column(places[field.name]), field) for field in schema]


def fit(column: pa.ChunkedArray, field: Field) -> Parsed:
    """The column in the field's type, and why some of its values do not fit."""
    due = field.type.arrow()
    if column.type == due:
        return column, {}
    if at.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    why = ""
    if fits(column.type, field.type):
        try:
            found = column.cast(due)
            if not (at.is_float32(due) and at.is_float64(column.type)) or _same(found, column):
                return found, {}
            why = "some values are not exact in 32 bits"
        except pa.ArrowInvalid:
            return ColumnReader(field.type).read(column.to_pylist())
        except pa.ArrowNotImplementedError as error:
            why = str(error)
    raise UsageError(
        "BAD_BATCH",
        f"column {field.name}: expected {field.type}, found {column.type}"
        + (f" that cannot be cast without loss: {why}" if why else ""),
    )


def fits(found: pa.DataType, due: Type) -> bool:
    """Whether values of an Arrow type can be values of a declared type at all."""
    if at.is_null(found):
        return True
    if due.is_integral:
        return bool(at.is_integer(found) or at.is_floating(found))
    if due.name in ("float", "double"):
        return bool(at.is_floating(found) or at.is_integer(found))
    if due.name == "decimal":
        return bool(at.is_decimal(found) or at.is_integer(found))
    if due.name == "boolean":
        return bool(at.is_boolean(found))
    if due.name == "string":
        return bool(at.is_string(found) or at.is_large_string(found) or at.is_string_view(found))
    if due.name == "binary":
        return bool(
            at.is_binary(found)
            or at.is_large_binary(found)
            or at.is_fixed_size_binary(found)
            or at.is_binary_view(found)
        )
    if due.name == "date":
        return bool(at.is_date(found))
    if due.name == "timestamp":
        return bool(at.is_timestamp(found))
    if due.name == "timestamp_ntz":
        return bool(at.is_timestamp(found)) and found.tz is None
    return _nested(found, due)


def _nested(found: pa.DataType, due: Type) -> bool:
    parts = due.children
    if due.name == "array":
        lists = at.is_list(found) or at.is_large_list(found) or at.is_fixed_size_list(found)
        return bool(lists) and fits(found.value_type, parts[0].type)
    if due.name == "map":
        return bool(at.is_map(found)) and (
            fits(found.key_type, parts[0].type) and fits(found.item_type, parts[1].type)
        )
    return (
        bool(at.is_struct(found))
        and {f.name for f in found} == {p.name for p in parts}
        and all(fits(found.field(p.name).type, p.type) for p in parts)
    )


def _same(narrow: pa.ChunkedArray, wide: pa.ChunkedArray) -> bool:
    back = narrow.cast(wide.type)
    return bool(pc.all(pc.or_(pc.equal(back, wide), pc.is_nan(wide))).as_py() is not False)
