"""The values of families: read from files and rows, or refused with the row that is wrong."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from auroral.errors import NetworkError, closest, list_existing

_CSV = pyarrow.csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
"""An empty field is NULL, as in streams; nothing else is."""
_READERS = {
    ".parquet": pyarrow.parquet.read_table,
    ".arrow": pyarrow.feather.read_table,
    ".feather": pyarrow.feather.read_table,
    ".csv": lambda path: pyarrow.csv.read_csv(path, convert_options=_CSV),
}


def read_file(path: str, directory: Path | None = None) -> pa.Table:
    """The values in a file; relative paths are below `directory`."""
    file = (directory or Path()) / path
    suffix = file.suffix.lower()
    if suffix not in _READERS:
        suffixes = ", ".join(_READERS)
        raise _bad("BAD_FILE", f"cannot read {path}: the suffixes are {suffixes}")
    if not file.exists():
        raise _bad("BAD_FILE", f"there is no file {path}")
    try:
        table = _READERS[suffix](str(file))
    except (OSError, pa.ArrowException) as error:
        raise _bad("BAD_FILE", f"cannot read {path}: {error}") from None
    if suffix != ".csv":
        return table
    _require_utf8(table, path)
    if not table.num_rows:
        raise no_rows(f"{path} has no rows, and ")
    return table


def _require_utf8(table: pa.Table, path: str) -> None:
    """Refuse a CSV file in another encoding; Arrow takes what is not UTF-8 for bytes."""
    try:
        names = table.column_names
    except UnicodeDecodeError as error:
        raise _encoding(path, "the header", error.object) from None
    for name, column in zip(names, table.columns, strict=True):
        if pa.types.is_binary(column.type):
            row, value = next(found for found in enumerate(column.to_pylist()) if _odd(found))
            raise _encoding(path, f"row {row + 1}, column {name}", value)


def _odd(found: tuple[int, bytes | None]) -> bool:
    try:
        (found[1] or b"").decode()
    except UnicodeDecodeError:
        return True
    return False


def _encoding(path: str, place: str, value: bytes) -> NetworkError:
    text = value.decode("latin-1")
    return _bad(
        "BAD_ENCODING",
        f"{path} is not UTF-8: {place} may be {text!r} in Latin-1",
        hint="save it as UTF-8",
    )


def from_rows(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows as a table; what a row does not say is NULL."""
    if not rows:
        raise no_rows()
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        if not isinstance(name, str):
            raise _bad("BAD_VALUES", f"the names of columns are text, found {name!r}")
    return pa.table({name: _column(name, [row.get(name) for row in rows]) for name in names})


def from_pandas(frame: Any) -> pa.Table:
    """A pandas frame as a table."""
    _require_own_names([str(name) for name in frame.columns])
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, OverflowError) as error:
        for name in frame.columns:
            _column(name, frame[name].tolist())
        raise _bad("BAD_VALUES", f"Arrow cannot hold the frame: {error}") from None


def _column(name: str, values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError) as error:
        count = bisect_left(
            range(len(values)), True, key=lambda last: not _agree(values[: last + 1])
        )
        reason = "" if count == 0 else ", unlike those before it"
        if isinstance(error, OverflowError):
            reason = ", which is too large"
        problem = f"row {count + 1}, column {name} has {values[count]!r}{reason}"
        raise _bad("BAD_VALUES", f"the rows do not agree: {problem}") from None


def _agree(values: list[Any]) -> bool:
    try:
        pa.array(values)
    except (pa.ArrowException, OverflowError):
        return False
    return True


def require_keys(table: pa.Table, key: str) -> pa.Table:
    """Refuse rows without a key of their own, and columns without a name of their own."""
    _require_own_names(table.column_names)
    if key not in table.column_names:
        raise NetworkError(
            "UNKNOWN_KEY",
            f"the values have no column {key}; {list_existing(table.column_names)}",
            where="key key",
            hint=closest(key, table.column_names),
        )
    keys = table[key]
    if keys.null_count:
        row = pc.index(pc.is_null(keys), True).as_py() + 1
        problem = f"row {row} has no {key}"
        if keys.null_count > 1:
            problem = f"{keys.null_count} rows have no {key}, the first is row {row}"
        raise NetworkError("BAD_VALUES", problem, where="key key")
    if _is_bytes(keys.type):
        table = _with_text(table, key)
        keys = table[key]
    if pa.types.is_nested(keys.type):
        problem = f"keys name queries, and cannot be {keys.type}"
        raise NetworkError("BAD_VALUES", problem, where="key key")
    counted = keys.value_counts() if len(keys) else None
    if counted is not None and len(counted) < len(keys):
        twice = next(c["values"] for c in counted.to_pylist() if c["counts"] > 1)
        rows = [row for row, found in enumerate(keys.to_pylist(), start=1) if found == twice]
        places = f", in rows {rows[0]} and {rows[1]}" if len(rows) > 1 else ""
        raise _bad("DUPLICATE_NAME", f"the {key} {twice} occurs twice{places}")
    return table


def _require_own_names(names: Sequence[str]) -> None:
    """Refuse two columns of one name, which a parameter could not tell apart."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise _bad("DUPLICATE_FIELD", f"the values have two columns {name}")
        seen.add(name.lower())


def _is_bytes(type: pa.DataType) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(kind(type) for kind in kinds)


def _with_text(table: pa.Table, key: str) -> pa.Table:
    try:
        text = table[key].cast(pa.string())
    except pa.ArrowException:
        problem = f"keys name queries, and the bytes in column {key} are no text in UTF-8"
        raise NetworkError("BAD_VALUES", problem, where="key key") from None
    return table.set_column(table.column_names.index(key), key, text)


def odd_value(values: pa.ChunkedArray) -> str | None:
    """What made a column text that should hold numbers, in words."""
    if values.null_count == len(values):
        return "it has no values"
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    for row, value in enumerate(values.to_pylist()):
        if isinstance(value, str) and not _is_number(value):
            return f"row {row + 1} has {value!r}"
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def no_rows(found: str = "") -> NetworkError:
    """Why a family cannot begin without any row."""
    return _bad(
        "BAD_VALUES",
        f"{found}without rows nobody knows the types of the parameters",
        hint="give an Arrow table, a Parquet or an Arrow file that has columns and no rows",
    )


def _bad(code: str, problem: str, hint: str | None = None) -> NetworkError:
    return NetworkError(code, problem, where="key values", hint=hint)
