"""Continuous queries as they are declared: one SQL text, or a family of rows of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, PlainSerializer, PlainValidator, StrictStr, WithJsonSchema

from auroral.errors import NetworkError
from auroral.ids import MemberId
from auroral.network.declarations import Described
from auroral.network.parameters import from_pandas, from_rows, read_file, require_keys
from auroral.network.types import Field as Field_
from auroral.network.types import Schema, Type

Results = Literal["keep", "count"]
_PLAIN = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date")
_BY_ARROW = {Type(name).arrow(): Type(name) for name in _PLAIN}


class Query(Described):
    """A standing SQL query. With `results` count its matches are counted, not kept."""

    sql: StrictStr
    results: Results = "keep"

    def __init__(self, sql: Any = None, **more: Any):
        super().__init__(**({} if sql is None else {"sql": sql}), **more)

    def document(self) -> Any:
        """The form the network file uses: the text alone if there is nothing else to say."""
        found = super().document()
        return found["sql"] if set(found) == {"sql"} else found


def _values(given: Any) -> Any:
    """Rows as they came: an Arrow table, a pandas frame, a path, a list of rows."""
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, str | Path):
        return str(given)
    if isinstance(given, pa.Table):
        return given
    if hasattr(given, "columns") and hasattr(given, "dtypes"):
        return from_pandas(given)
    what, found = "a Parquet, Arrow or CSV file, an Arrow table or a list of rows", type(given)
    if isinstance(given, Sequence) and not isinstance(given, bytes):
        odd = next((n for n, row in enumerate(given) if not isinstance(row, dict)), None)
        if odd is None:
            return list(given)
        what, found = f"a dict of columns and values as row {odd + 1}", type(given[odd])
    problem = f"expected {what}, found {found.__name__}"
    raise NetworkError("BAD_PARAMETER", problem, where="key values")


def _plain(values: Any) -> Any:
    return values.to_pylist() if isinstance(values, pa.Table) else values


Values = Annotated[
    Any,
    PlainValidator(_values),
    PlainSerializer(_plain),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}],
            "description": "a Parquet, Arrow or CSV file, or rows",
        }
    ),
]


class Family(Query):
    """One query for each row of `values`: columns are its parameters `:name`, `key` names it.

    >>> rows = [{"rule": "r1", "sym": "A", "limit": 9.5}]
    >>> alerts = Family("SELECT * FROM s WHERE sym = :sym AND price > :limit", rows, "rule")
    >>> alerts.table().num_rows
    1
    """

    values: Values = Field(...)
    key: StrictStr

    def __init__(self, sql: Any = None, values: Any = None, key: Any = None, **more: Any):
        given = {"values": values, "key": key}
        super().__init__(sql, **{n: v for n, v in given.items() if v is not None}, **more)

    def with_values(self, values: Any, directory: Path | None = None) -> Family:
        """The same for other rows; columns of NULLs alone have the types they have here."""
        found = Family(self.sql, values, self.key, results=self.results)
        table = found.table(directory)
        empty = [f.name for f in table.schema if pa.types.is_null(f.type)]
        own = self.table(directory).schema if empty else pa.schema([])
        for name in (name for name in empty if name in own.names):
            at = table.column_names.index(name)
            table = table.set_column(at, own.field(name), table[name].cast(own.field(name).type))
        return Family(self.sql, table, self.key, results=self.results)

    def table(self, directory: Path | None = None) -> pa.Table:
        """The rows; relative paths are below `directory`. Keys must be there and differ."""
        table = read_file(self.values, directory) if isinstance(self.values, str) else self.values
        if isinstance(table, list):
            table = from_rows(table)
        return require_keys(table, self.key)

    def types(self, directory: Path | None = None) -> Schema:
        """The parameters there are, and their types."""
        return parameter_types(self.table(directory))


def declared_member(
    queries: Mapping[str, Query], name: str, directory: Path | None = None
) -> str | None:
    """The family among some queries that has a member; None if none has.

    >>> alerts = Family("SELECT * FROM s WHERE sym = :sym", [{"rule": 17, "sym": "A"}], "rule")
    >>> [declared_member({"alerts": alerts}, f"alerts[{key}]") for key in (17, 18)]
    ['alerts', None]
    """
    member = MemberId.parse(name)
    found = queries.get(member.family)
    if not isinstance(found, Family) or member.key is None:
        return None
    keys = found.table(directory)[found.key].cast(pa.string())
    return member.family if pc.index(keys, member.key).as_py() >= 0 else None


def parameter_types(table: pa.Table) -> Schema:
    """Columns of values as Spark calls their types; others are taken for text."""
    return Schema(tuple(Field_(f.name, _type(f.type)) for f in table.schema))


def _type(found: pa.DataType) -> Type:
    if pa.types.is_dictionary(found):
        return _type(found.value_type)
    if pa.types.is_decimal(found):
        return Type("decimal", found.precision, found.scale)
    if pa.types.is_timestamp(found):
        return Type("timestamp_ntz" if found.tz is None else "timestamp")
    if pa.types.is_unsigned_integer(found):
        return Type("bigint")
    return _BY_ARROW.get(found, Type("string"))
