"""Continuous queries as they are declared: one SQL text, or a family of rows of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from pydantic import Field, PlainSerializer, PlainValidator, StrictStr, WithJsonSchema

from auroral.errors import NetworkError, closest, known
from auroral.network.declarations import Declaration
from auroral.network.types import Field as Field_
from auroral.network.types import Schema, Type

Results = Literal["keep", "count"]
_CSV = pyarrow.csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
"""An empty field is NULL, as in streams; nothing else is."""
_READERS = {
    ".parquet": pyarrow.parquet.read_table,
    ".arrow": pyarrow.feather.read_table,
    ".feather": pyarrow.feather.read_table,
    ".csv": lambda path: pyarrow.csv.read_csv(path, convert_options=_CSV),
}

_PLAIN = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date")
_BY_ARROW = {Type(name).arrow(): Type(name) for name in _PLAIN}


class Query(Declaration):
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
        return pa.Table.from_pandas(given, preserve_index=False)
    if isinstance(given, Sequence) and all(isinstance(row, dict) for row in given):
        return list(given)
    raise NetworkError(
        "BAD_PARAMETER",
        "expected a Parquet, Arrow or CSV file, an Arrow table or a list of rows, found"
        f" {type(given).__name__}",
    )


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
        table = _read(self.values, directory) if isinstance(self.values, str) else self.values
        if isinstance(table, list):
            table = _from_rows(table)
        return require_keys(table, self.key)

    def types(self, directory: Path | None = None) -> Schema:
        """The parameters there are, and their types."""
        return parameter_types(self.table(directory))


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


def require_keys(table: pa.Table, key: str) -> pa.Table:
    """Refuse rows without a key of their own."""
    if key not in table.column_names:
        raise NetworkError(
            "UNKNOWN_KEY",
            f"the values have no column {key}; {known(table.column_names)}",
            where="key key",
            hint=closest(key, table.column_names),
        )
    keys = table[key]
    if keys.null_count:
        raise NetworkError("BAD_VALUES", f"{keys.null_count} rows have no {key}", where="key key")
    if pa.types.is_nested(keys.type):
        problem = f"keys name queries, and cannot be {keys.type}"
        raise NetworkError("BAD_VALUES", problem, where="key key")
    counted = keys.value_counts() if len(keys) else None
    if counted is not None and len(counted) < len(keys):
        twice = next(c["values"] for c in counted.to_pylist() if c["counts"] > 1)
        raise NetworkError("DUPLICATE_NAME", f"the {key} {twice} occurs twice", where="key values")
    return table


def _read(path: str, directory: Path | None) -> pa.Table:
    file = (directory or Path()) / path
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise NetworkError(
            "BAD_FILE",
            f"cannot read {path}: the suffixes are {', '.join(_READERS)}",
            where="key values",
        )
    try:
        return reader(str(file))
    except (OSError, pa.ArrowException) as error:
        raise NetworkError("BAD_FILE", f"cannot read {path}: {error}", where="key values") from None


def _from_rows(rows: list[dict[str, Any]]) -> pa.Table:
    if not rows:
        raise NetworkError(
            "BAD_VALUES",
            "without rows nobody knows the types of the parameters",
            where="key values",
            hint="give an Arrow table, a Parquet or an Arrow file that has columns and no rows",
        )
    try:
        return pa.Table.from_pylist(rows)
    except (pa.ArrowException, OverflowError) as error:
        raise NetworkError(
            "BAD_VALUES", f"the rows do not agree: {error}", where="key values"
        ) from None
