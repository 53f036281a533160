"""State tables that are appended to, and rewritten only when enough rows are dead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from auroral.kernels.kernel import Appended
from auroral.kernels.ordering import sub_bytes
from auroral.kernels.units import Mask

APPEND = "_append"
"""How many appends after it was written anew a row came."""
_APPENDS = 8
HIDDEN = (("_seq", pa.int64()), ("_ts", pa.int64()), ("_sub", pa.binary()))


def stored_schema(columns: Sequence[tuple[str, pa.DataType]], hidden: bool = True) -> pa.Schema:
    """State of tuples with these columns."""
    return pa.schema([*(HIDDEN if hidden else ()), *columns, (APPEND, pa.int32())])


def renewed(
    old: pa.Table,
    live: Mask,
    new: pa.Table,
    *,
    anew: bool = False,
    whole: Callable[[], pa.Table] | None = None,
) -> pa.Table | Appended | None:
    """The change to store if only some rows of `old` are alive: an append, a new table, or None.

    If it is to be written `anew`, it is a new table. `whole` gives all columns of `old`, if it has
    some only.
    """
    alive = int(live.sum())
    appends = int(np.max(np.asarray(old[APPEND]), initial=0)) + 1 if old.num_rows else 1
    if anew or 2 * alive < old.num_rows or (appends > _APPENDS and new.num_rows):
        old = old if whole is None else whole()
        kept = old.filter(pa.array(live)) if alive < old.num_rows else old
        return pa.concat_tables([_marked(kept, 0), _marked(new, 0, old.schema)])
    return appended(new, appends, old.schema if whole is None else None)


def appended(new: pa.Table, appends: int = 1, schema: pa.Schema | None = None) -> Appended | None:
    """Tuples to append to a table; None if there are none.

    Without a schema they have all the columns that the table has for tuples.
    """
    if schema is None:
        schema = new.schema.append(pa.field(APPEND, pa.int32()))
    return Appended(_marked(new, appends, schema)) if new.num_rows else None


def conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema, which alone says what may be NULL."""
    return pa.Table.from_arrays([table[name] for name in schema.names], schema=schema)


def tuples(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Tuples in the columns that a state table has for them."""
    return conformed(table, pa.schema([field for field in schema if field.name != APPEND]))


def in_arrival_order(table: pa.Table) -> pa.Table:
    """Stored tuples in order of arrival, in whatever order they were read."""
    seq = np.asarray(table["_seq"], np.int64)
    if (seq[1:] > seq[:-1]).all():
        return table
    return table.sort_by([("_seq", "ascending"), ("_sub", "ascending")])


def newest_rows(known: npt.NDArray[np.int64], old: pa.Table, count: int) -> npt.NDArray[np.int64]:
    """Of each group the row of its newest stored state, −1 if it has none.

    `known` numbers the groups of the rows of `old`, `count` is how many groups there are.
    """
    order = np.argsort(np.asarray(old[APPEND], np.int64), kind="stable")
    newest = np.full(count, -1, np.int64)
    newest[known[order]] = order
    return newest


def with_sub(table: pa.Table) -> pa.Table:
    """A table that has `_sub`, of empty byte strings if need be."""
    if "_sub" in table.column_names:
        return table
    return table.append_column("_sub", sub_bytes(table))


def _marked(table: pa.Table, appends: int, schema: pa.Schema | None = None) -> pa.Table:
    """The columns of a state table, told to come from that append."""
    schema = schema or table.schema
    number = pa.array(np.full(table.num_rows, appends, np.int32))
    columns = [number if name == APPEND else table[name] for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)
