"""The values of attributes for the tuples of a batch, as Spark SQL has them with ANSI mode off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.continuous.functions import PythonFunction
from auroral.continuous.sharing.template import Attribute
from auroral.eddy.vectors.batch import TupleBatch, TupleFailures
from auroral.eddy.vectors.compiler import Compiler
from auroral.eddy.vectors.computed import Computed
from auroral.eddy.vectors.vector import one_chunk, type_of
from auroral.errors import NetworkError, closest, list_existing
from auroral.network.types import Field, Schema, Type
from auroral.sql.expressions.parser import parse
from auroral.sql.expressions.syntax import Call, Member, Name, Node, free_names, walk
from auroral.sql.queries.names import substituted

__all__ = ["Evaluated", "PythonFunction", "TupleColumns"]


@dataclass(frozen=True)
class Evaluated:
    """The values of an attribute.

    `failed` says where it could not be computed (the value is NULL there), `reason` why the
    first was not; None if all were.
    """

    values: pa.Array
    failed: npt.NDArray[np.bool_] | None = None
    reason: str | None = None

    def take(self, rows: npt.NDArray[np.integer]) -> Evaluated:
        """The values at some places."""
        failed = None if self.failed is None else self.failed[rows]
        if failed is not None and not failed.any():
            failed = None
        return Evaluated(
            self.values.take(pa.array(rows)), failed, None if failed is None else self.reason
        )


class TupleColumns:
    """The tuples of a batch; columns are named as attributes call fields, `price` or `s1.price`.

    >>> columns = TupleColumns(pa.table({"price": [1.0, 2.5, None]}))
    >>> columns.evaluate(Attribute("price * 2 > 3", Type("boolean"))).values.to_pylist()
    [False, True, None]
    """

    def __init__(self, table: pa.Table, functions: Mapping[str, PythonFunction] | None = None):
        self.table = table
        self.rows: int = table.num_rows
        self.functions = {name.lower(): made for name, made in (functions or {}).items()}
        self._at = {name.lower(): at for at, name in enumerate(table.column_names)}
        self._columns: dict[str, pa.Array] = {}
        self._evaluated: dict[str, Evaluated] = {}

    def column(self, field: str) -> pa.Array:
        """A field's values in one chunk."""
        key = field.lower()
        if key not in self._columns:
            if key not in self._at:
                raise NetworkError(
                    "UNKNOWN_FIELD",
                    f"there is no field {field}; {list_existing(self.table.column_names)}",
                    hint=closest(field, self.table.column_names),
                )
            self._columns[key] = one_chunk(self.table.column(self._at[key]))
        return self._columns[key]

    def evaluate(
        self,
        attribute: Attribute,
        rows: npt.NDArray[np.integer] | None = None,
        constants: Mapping[int, pa.Array] | None = None,
    ) -> Evaluated:
        """The attribute of each tuple, or of those at `rows`, which may repeat.

        `constants[n]` has the value of `:n` for each of the rows.
        """
        if attribute.field is not None and attribute.field.lower() in self._at:
            values = self.column(attribute.field)
            return Evaluated(values if rows is None else values.take(pa.array(rows)))
        if attribute.slots or constants:
            return self._compute(attribute, rows, constants or {})
        if attribute.text not in self._evaluated:
            if rows is not None:
                return self._compute(attribute, rows, {})
            self._evaluated[attribute.text] = self._compute(attribute, None, {})
        found = self._evaluated[attribute.text]
        return found if rows is None else found.take(rows)

    def _compute(
        self,
        attribute: Attribute,
        rows: npt.NDArray[np.integer] | None,
        constants: Mapping[int, pa.Array],
    ) -> Evaluated:
        given = {f":{slot}": one_chunk(values) for slot, values in constants.items()}
        taken = None if rows is None else pa.array(rows)

        def read(name: str) -> tuple[pa.Array, Type]:
            array = given.get(name)
            if array is None:
                array = self.column(name)
                if taken is not None:
                    array = array.take(taken)
            return array, type_of(array.type)

        types = tuple((name, type_of(array.type)) for name, array in sorted(given.items()))
        returns = tuple(sorted((name, f.returns) for name, f in self.functions.items()))
        computed = _compiled(attribute.text, self.table.schema, types, returns)
        count = self.rows if rows is None else len(rows)
        failures = TupleFailures(count)
        batch = TupleBatch(read, count, self.functions, failures)
        values = computed.run(batch).spread(count).arrow()
        if attribute.type.arrow() != values.type:
            values = values.cast(attribute.type.arrow())
        if failures.mask is not None:
            values = _without(values, failures.mask)
        return Evaluated(values, failures.mask, failures.reason)


def _without(values: pa.Array, failed: npt.NDArray[np.bool_]) -> pa.Array:
    """The values with NULL where they failed."""
    at = pa.array(np.arange(len(values)), mask=failed)
    return values.take(at)


@lru_cache(maxsize=8192)
def _compiled(
    text: str,
    columns: pa.Schema,
    constants: tuple[tuple[str, Type], ...],
    functions: tuple[tuple[str, Type], ...],
) -> Computed:
    names = {name.lower(): name for name in columns.names}
    tree = substituted(parse(text), lambda node: _flat(node, names))
    called = {name.lower() for name, _ in functions}
    called &= {node.name for node in walk(tree) if isinstance(node, Call)}
    wanted = dict.fromkeys(name.lower() for name in free_names(tree))
    given = dict(constants)
    fields = [
        Field(names[name], type_of(columns.field(columns.names.index(names[name])).type))
        for name in wanted
        if name in names and name not in given
    ]
    fields += [Field(name, type) for name, type in constants if name in wanted]
    returns = {name: type for name, type in functions if name in called}
    return Compiler(Schema(tuple(fields)), returns).compile(tree)


def _flat(node: Node, names: Mapping[str, str]) -> Node | None:
    """`s1.price` as the column of that name."""
    if isinstance(node, Member) and isinstance(node.base, Name):
        whole = f"{node.base.name}.{node.name}"
        if node.base.name.lower() not in names and whole.lower() in names:
            return Name(whole)
    return None
