"""Arrow streams from strangers: how large they will be is read before anything is decompressed.

Compression lets a kilobyte become gigabytes, and dictionaries and views let many rows share one
large value. The metadata of a message tells the size of each buffer; see Message.fbs of Arrow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc
from pyarrow import types as at

from auroral.server.problems import RequestError, bad_body

_DICTIONARY, _RECORDS = 2, 3
"""Kinds of messages that have a body."""
_NOT_COMPRESSED = -1


def read_arrow_stream(body: bytes, most_rows: int, most_bytes: int) -> pa.Table:
    """The rows of an Arrow stream that has, decompressed, at most so many rows and bytes."""
    try:
        _require_small(body, most_rows, most_bytes)
        with ipc.open_stream(body) as reader:
            require_own_values(reader.schema)
            table = reader.read_all()
            require_sound(table, most_rows, most_bytes)
            return table
    except (pa.ArrowException, OSError, ValueError, struct.error) as error:
        raise bad_body(f"the body is no Arrow stream: {error}") from None


def require_own_values(schema: pa.Schema) -> None:
    """Refuse fields whose rows can share one large value."""
    if not all(_has_own_values(kind) for kind in schema.types):
        raise bad_body("views and encodings inside other types are not taken; send values")


def require_sound(rows: pa.Table | pa.RecordBatch, most_rows: int, most_bytes: int) -> None:
    """Refuse rows that are too many or too large, or whose buffers do not fit each other.

    Their schema has passed `require_own_values`.
    """
    if rows.num_rows > most_rows:
        raise _too_large(f"{most_rows} rows")
    if rows.nbytes > most_bytes:
        raise _too_large(f"{most_bytes} bytes")
    rows.validate(full=True)
    if sum(map(_expanded_bytes, rows.columns)) > most_bytes:
        raise _too_large(f"{most_bytes} bytes")


def _require_small(body: bytes, most_rows: int, most_bytes: int) -> None:
    rows = size = 0
    for message in ipc.MessageReader.open_stream(pa.py_buffer(body)):
        more = _Message(message.metadata.to_pybytes())
        rows += more.rows
        if rows > most_rows:
            raise _too_large(f"{most_rows} rows")
        size += sum(more.sizes(message.body))
        if size > most_bytes:
            raise _too_large(f"{most_bytes} bytes when decompressed")


def _too_large(what: str) -> RequestError:
    return RequestError(
        413, "TOO_LARGE", f"a request has at most {what}", hint="send them in parts"
    )


class _Message:
    """What the metadata of a message says of its buffers."""

    def __init__(self, metadata: bytes):
        self._bytes = metadata
        message = self._number("<I", 0)
        kind = self._field(message, 1)
        held = self._table(message, 2)
        if kind is not None and self._number("<B", kind) == _DICTIONARY and held is not None:
            held = self._table(held, 1)
        elif kind is None or self._number("<B", kind) != _RECORDS:
            held = None
        self._batch = held
        length = None if held is None else self._field(held, 0)
        self.rows = 0 if length is None else max(self._number("<q", length), 0)

    def sizes(self, body: pa.Buffer | None) -> Iterator[int]:
        """The size of each buffer when it is decompressed."""
        if self._batch is None or body is None:
            return
        compressed = self._field(self._batch, 3) is not None
        buffers = self._table(self._batch, 2)
        for number in range(0 if buffers is None else self._number("<I", buffers)):
            assert buffers is not None
            start, length = struct.unpack_from("<qq", self._bytes, buffers + 4 + 16 * number)
            size = length
            if compressed and length:
                (size,) = struct.unpack("<q", body[start : start + 8].to_pybytes())
                size = length if size == _NOT_COMPRESSED else size
            if size < 0:
                raise ValueError("a buffer has a negative size")
            yield size

    def _number(self, form: str, at: int) -> int:
        found: int = struct.unpack_from(form, self._bytes, at)[0]
        return found

    def _field(self, table: int, number: int) -> int | None:
        """Where a field of a table is; None if it is not there."""
        fields = table - self._number("<i", table)
        at = 4 + 2 * number
        offset = self._number("<H", fields + at) if at < self._number("<H", fields) else 0
        return table + offset if offset else None

    def _table(self, table: int, number: int) -> int | None:
        """Where the table or vector is that a field points to."""
        field = self._field(table, number)
        return None if field is None else field + self._number("<I", field)


def _has_own_values(kind: pa.DataType, *, outermost: bool = True) -> bool:
    """Whether no two rows can share a value, but by a dictionary of the column."""
    if isinstance(kind, pa.BaseExtensionType):
        return _has_own_values(kind.storage_type, outermost=False)
    if at.is_dictionary(kind):
        value = kind.value_type
        flat = not at.is_nested(value) and not isinstance(value, pa.BaseExtensionType)
        return outermost and flat and _has_own_values(value, outermost=False)
    if at.is_run_end_encoded(kind) or at.is_list_view(kind) or at.is_large_list_view(kind):
        return False
    if at.is_string_view(kind) or at.is_binary_view(kind):
        return False
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return all(_has_own_values(one, outermost=False) for one in inner)


def _expanded_bytes(column: pa.ChunkedArray | pa.Array) -> int:
    """The size of a column with values in place of a dictionary."""
    kind = column.type
    if not at.is_dictionary(kind):
        return int(column.nbytes)
    if not _has_lengths(kind.value_type):  # each value has the same size
        bits = 0 if at.is_null(kind.value_type) else kind.value_type.bit_width
        return int(column.nbytes) + len(column) * bits // 8
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    lengths = (pc.binary_length(c.dictionary).take(c.indices) for c in chunks)
    return sum(pc.sum(pc.cast(length, pa.int64())).as_py() or 0 for length in lengths)


def _has_lengths(kind: pa.DataType) -> bool:
    return bool(
        at.is_string(kind)
        or at.is_large_string(kind)
        or at.is_binary(kind)
        or at.is_large_binary(kind)
    )
