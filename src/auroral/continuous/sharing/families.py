"""Families: the constants of many queries from a table of values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from auroral.continuous.sharing.predicates import Slot, folded
from auroral.continuous.sharing.spelling import spelled
from auroral.continuous.sharing.template import Template
from auroral.errors import NetworkError, RunError, closest, list_existing
from auroral.network.queries import parameter_types
from auroral.network.types import Field, Schema, Type
from auroral.sql.expressions.casts import cast_value
from auroral.sql.expressions.compiler import compile_node
from auroral.sql.expressions.syntax import Name, Node, free_names


@dataclass(frozen=True)
class Constant:
    """A constant that is the same for every member."""

    value: Any


@dataclass(frozen=True)
class Derived:
    """A constant computed from several columns, or by an expression of one."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class ReadFamily:
    """A template, and for each of its slots the column of the values, or a fixed constant."""

    template: Template
    parameters: tuple[str | Constant | Derived, ...]
    slots: tuple[Slot, ...] = field(default=(), compare=False, repr=False)


def family_of(template: Template, slots: Sequence[Slot]) -> ReadFamily:
    """A query with parameters, taken apart."""
    return ReadFamily(template, tuple(map(_parameter, slots)), tuple(slots))


def _parameter(slot: Slot) -> str | Constant | Derived:
    if not parameters(slot):
        return Constant(slot.finish([folded(tree) for tree in slot.trees]))
    first = slot.trees[0]
    if isinstance(first, Name) and not slot.listed:
        return first.name[1:]
    return Derived(tuple(spelled(tree) or "…" for tree in slot.trees))


def _names(tree: Node) -> list[str]:
    return [name[1:] for name in free_names(tree)]


def parameters(slot: Slot) -> list[str]:
    """Those that a constant is made of."""
    return list(dict.fromkeys(name for tree in slot.trees for name in _names(tree)))


def family_constants(read: ReadFamily, values: pa.Table) -> pa.Table:
    """The constants of each member: columns `0`, `1` … in the types of the slots.

    A value that its slot cannot hold exactly is refused; NULL satisfies nothing.
    """
    arrays = [_column(slot, values) for slot in read.slots]
    return _table(arrays, values.num_rows)


def constants_table(template: Template, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows of constants as a table; a slot that `in` uses holds lists."""
    lists = {
        atom.slot
        for clauses in (*(source.clauses for source in template.sources), template.clauses)
        for clause in clauses
        for atom in clause
        if atom.op in ("in", "not in")
    }
    arrays = [
        pa.array([row[at] for row in rows], _arrow(type, at in lists))
        for at, type in enumerate(template.slots)
    ]
    return _table(arrays, len(rows))


def _table(arrays: Sequence[pa.Array], rows: int) -> pa.Table:
    if not arrays:  # a table without columns that knows its rows all the same
        return pa.table({"0": pa.nulls(rows)}).select([])
    return pa.table({str(at): array for at, array in enumerate(arrays)})


def _arrow(type: Type, listed: bool) -> pa.DataType:
    return pa.list_(type.arrow()) if listed else type.arrow()


def _column(slot: Slot, values: pa.Table) -> pa.Array:
    to = _arrow(slot.type, slot.listed)
    names = parameters(slot)
    if not names:
        value = slot.finish([folded(tree) for tree in slot.trees])
        return pa.array([value] * values.num_rows, to)
    columns = {name: _values(values, name) for name in names}
    if len(slot.trees) == 1 and isinstance(slot.trees[0], Name) and not slot.listed:
        return exact(columns[names[0]], slot.type, names[0])
    exact_ones = slot.exact or (False,) * len(slot.trees)
    parts = []
    for tree, given in zip(slot.trees, exact_ones, strict=True):
        if given:
            name = _names(tree)[0]
            parts.append(exact(columns[name], slot.type, name).to_pylist())
        else:
            parts.append(_computed(tree, columns, values.num_rows))
    return pa.array([slot.finish(list(row)) for row in zip(*parts, strict=True)], to)


def _values(values: pa.Table, name: str) -> pa.Array:
    at = {column.lower(): number for number, column in enumerate(values.column_names)}
    if name.lower() not in at:
        raise NetworkError(
            "UNKNOWN_PARAMETER",
            f"there is no column {name} among the values; {list_existing(values.column_names)}",
            hint=closest(name, values.column_names),
        )
    found = values.column(at[name.lower()])
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _computed(tree: Node, columns: dict[str, pa.Array], rows: int) -> list[Any]:
    """An expression of parameters, for each member."""
    names = {name: _type(columns[name]) for name in dict.fromkeys(_names(tree))}
    schema = Schema(tuple(Field(f":{name}", type) for name, type in names.items()))
    run = compile_node(tree, schema).run
    if not names:
        return [run({})] * rows
    lists = [exact(columns[name], type, name).to_pylist() for name, type in names.items()]
    keys = [f":{name}" for name in names]
    found = []
    for row, given in enumerate(zip(*lists, strict=True)):
        try:
            found.append(run(dict(zip(keys, given, strict=True))))
        except RunError as error:
            raise _misfit(row, ", ".join(names), error.message) from None
    return found


def _type(array: pa.Array) -> Type:
    return parameter_types(pa.table({"x": array})).fields[0].type


def exact(array: pa.Array, type: Type, name: str) -> pa.Array:
    """A column in a slot's type, each value exactly."""
    to = type.arrow()
    if array.type == to:
        return array
    try:
        if _is_text(array.type) and type.name != "string":
            return _parsed(array, type, name)
        if pa.types.is_floating(array.type) and type.name == "decimal":
            return _digits(array, type, name)
        found = array.cast(to)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        found = None
    if found is None or (pa.types.is_floating(to) and not _returns(array, found)):
        for row, value in enumerate(array):
            if not _fits(value, to):
                raise _misfit(row, name, f"{value.as_py()!r} does not fit {type}")
        raise NetworkError("TYPE_MISMATCH", f"{name}: {array.type} cannot become {type}")
    return found


def retyped(values: pa.Table, names: Collection[str], types: Schema) -> pa.Table:
    """Some columns in the types that others have, each value exactly."""
    wanted = {name.lower() for name in names}
    for at, name in enumerate(values.column_names):
        if name.lower() in wanted and name in types:
            column = exact(_values(values, name), types.field(name).type, name)
            values = values.set_column(at, name, column)
    return values


def _digits(array: pa.Array, type: Type, name: str) -> pa.Array:
    """Floats as the decimals they read as."""
    found = []
    for row, value in enumerate(array.to_pylist()):
        cast = cast_value(value, Type("double"), type)
        if value is not None and (cast is None or cast != Decimal(repr(value))):
            raise _misfit(row, name, f"{value!r} does not fit {type}")
        found.append(cast)
    return pa.array(found, type.arrow())


def _parsed(array: pa.Array, type: Type, name: str) -> pa.Array:
    """Texts as dates and timestamps."""
    found = []
    for row, text in enumerate(array.to_pylist()):
        try:
            value = cast_value(text, Type("string"), type)
        except RunError as error:
            raise _misfit(row, name, error.message) from None
        if value is None and text is not None:
            raise _misfit(row, name, f"{text!r} is no {type}")
        found.append(value)
    return pa.array(found, type.arrow())


def _fits(value: pa.Scalar, to: pa.DataType) -> bool:
    one = pa.array([value.as_py()], value.type)
    try:
        return _returns(one, one.cast(to))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False


def _returns(array: pa.Array, found: pa.Array) -> bool:
    """Whether nothing was rounded."""
    if not pa.types.is_floating(found.type):
        return True
    if pa.types.is_decimal(array.type):
        back = [None if v is None else Decimal(repr(v)) for v in found.to_pylist()]
        return bool(array.to_pylist() == back)
    back = found.cast(array.type, safe=False)
    same = pc.equal(array, back)
    if pa.types.is_floating(array.type):
        same = pc.or_(same, pc.is_nan(array))
    return bool(pc.all(same).as_py() is not False)


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def _misfit(row: int, name: str, problem: str) -> NetworkError:
    return NetworkError("BAD_VALUE", problem, where=f"row {row + 1}, column {name}")
