"""The line protocol of InfluxDB: measurement, tags, fields and a time in nanoseconds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as at

from auroral.errors import UsageError
from auroral.io.batches import DecodedRows
from auroral.io.readers.text import expected
from auroral.network.types import Schema, Type
from auroral.server.converters.converter import LineConverter
from auroral.server.converters.texts import read_texts, write_texts

MEASUREMENT = "measurement"
TIMES = ("time", "timestamp")
"""Fields that receive the time of a record, the first that there is."""
_EMPTY = "_empty"
"""The field of a record that has no other: the protocol wants one."""
_NONE = "_"
"""The measurement of a record whose measurement is NULL, or a field."""

_NAME = r"(?>\\[,= ]|[^,= \n])+"
_VALUE = r'(?:"(?>\\.|[^"\\])*"|[^,\s"]+)'
_RECORD = re.compile(
    rf"(?P<measurement>(?>\\[,= ]|[^, \n])+)(?P<tags>(?:,{_NAME}={_NAME})*)[ ]+"
    rf"(?P<fields>{_NAME}={_VALUE}(?:,{_NAME}={_VALUE})*)"
    r"(?:[ ]+(?P<time>-?[0-9]{1,25}))?[ ]*\r?(?:\n|\Z)",
    re.DOTALL,
)
_PAIR = re.compile(rf"({_NAME})=({_VALUE})(?:,|$)", re.DOTALL)
_TAG = re.compile(rf",({_NAME})=({_NAME})")
_ESCAPED_NAME = re.compile(r"\\([,= ])")
_ESCAPED_TEXT = re.compile(r'\\(["\\])')
_INTEGER = re.compile(r"[+-]?[0-9]+[iu]")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {
    **dict.fromkeys(("t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("f", "F", "false", "False", "FALSE"), False),
}
_SPECIAL = re.compile(r"[,= ]")
_BREAKS = re.compile(r"[\\\r\n]")


class InfluxConverter(LineConverter):
    """A record per line; tags and fields are fields of the stream, by name.

    The stream's field `measurement` receives the measurement if there is one, and `time`, else
    `timestamp`, the time: a bigint in nanoseconds, a timestamp cut to microseconds.

    >>> schema = Schema.parse("host string, load double, time bigint")
    >>> InfluxConverter().decode(b"cpu,host=a load=0.5 1700000000000000000", schema).good
    [{'host': 'a', 'load': 0.5, 'time': 1700000000000000000}]
    """

    name = "influx"
    media_types = ("application/vnd.influx.line-protocol", "application/x-influx")

    def decode(self, data: bytes, schema: Schema) -> DecodedRows:
        return _LineReading(schema).decode(data)

    def decode_block(self, data: bytes, schema: Schema) -> DecodedRows:
        return self.decode(data, schema)

    def cut(self, data: bytes) -> int:
        """Cut after the last line end that is in no string, if that can be seen."""
        last = end = data.rfind(b"\n") + 1
        for _ in range(16):
            if not end or _even(data[:end]):
                return end or last
            end = data.rfind(b"\n", 0, end - 1) + 1
        return last

    def encode(self, table: pa.Table) -> bytes:
        return "".join(_lines(table)).encode()


def _even(data: bytes) -> bool:
    """Whether every string that begins ends, as far as quotes tell."""
    return (data.count(b'"') - data.count(b'\\"')) % 2 == 0


class _LineReading:
    """Reads records for one schema."""

    def __init__(self, schema: Schema):
        self._schema = schema
        names = {field.name.lower(): field for field in schema}
        measured = names.get(MEASUREMENT)
        self._measurement = measured.name if measured else None
        timed = next((names[name] for name in TIMES if name in names), None)
        self._time = timed.name if timed else None
        self._time_type = timed.type if timed else Type("bigint")

    def decode(self, data: bytes) -> DecodedRows:
        text = data.decode(errors="surrogateescape")
        rows: list[dict[str, Any] | None] = []
        broken: dict[int, str] = {}
        texts: list[str] = []
        lines: list[int] = []
        for line, record, found in _records(text):
            row, why = None, None
            if found is None:
                why = "expected measurement[,tag=value..] field=value[,field=value..] [time]"
            elif not record.isascii() and any("\udc80" <= c <= "\udcff" for c in record):
                why = "invalid UTF-8"
            else:
                try:
                    row = self._row(found)
                except ValueError as error:
                    why = str(error)
            if why:
                broken[len(rows)] = why
            rows.append(row)
            texts.append(record)
            lines.append(line)
        raws = [t if t.isascii() else t.encode(errors="surrogateescape") for t in texts]
        return DecodedRows(read_texts(rows, self._schema, broken), broken, raws, lines)

    def _row(self, found: re.Match[str]) -> dict[str, Any]:
        row: dict[str, Any] = {}
        if self._measurement is not None and found["measurement"] != _NONE:
            row[self._measurement] = _unescaped(found["measurement"])
        pairs = [(_unescaped(k), _unescaped(v)) for k, v in _TAG.findall(found["tags"])]
        fields = [(_unescaped(k), _value(v)) for k, v in _PAIR.findall(found["fields"])]
        given: dict[str, Any] = {}
        for name, value in (*pairs, *fields):
            if name in given:
                raise ValueError(f"{name} occurs twice")
            given[name] = value
        given.pop(_EMPTY, None)
        row |= given
        if found["time"] is not None and self._time is not None:
            row[self._time] = _at(int(found["time"]), self._time_type)
        return row


def _records(text: str) -> Iterator[tuple[int, str, re.Match[str] | None]]:
    """The records with their lines; a bad one ends with its line."""
    place, line = 0, 1
    while place < len(text):
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        first = text[place:end]
        if not first.strip() or first.lstrip().startswith("#"):
            place, line = end + 1, line + 1
            continue
        found = _RECORD.match(text, place)
        if found is None:
            yield line, first, None
            place, line = end + 1, line + 1
        else:
            record = found.group()
            yield line, record.rstrip("\r\n"), found
            place, line = found.end(), line + record.count("\n")


def _unescaped(name: str) -> str:
    return _ESCAPED_NAME.sub(r"\1", name) if "\\" in name else name


def _value(text: str) -> Any:
    if text[0] == '"':
        inside = text[1:-1]
        return _ESCAPED_TEXT.sub(r"\1", inside) if "\\" in inside else inside
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INTEGER.fullmatch(text):
        return int(text[:-1])
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    raise ValueError(expected("a number, a boolean or text in quotes", text))


def _at(time_ns: int, type: Type) -> Any:
    if not type.name.startswith("timestamp"):
        return str(time_ns) if type.name == "string" else time_ns
    try:
        return pa.scalar(time_ns // 1000, pa.timestamp("us")).as_py()
    except (OverflowError, ValueError, pa.ArrowInvalid):
        raise ValueError(f"the time {time_ns} is out of range") from None


# ── writing ──


def _lines(table: pa.Table) -> Iterator[str]:
    names = [_key(name) for name in table.column_names]
    lower = [name.lower() for name in table.column_names]
    at_time = next((lower.index(name) for name in TIMES if name in lower), None)
    if at_time is not None and not _is_time(table.column(at_time).type):
        at_time = None
    measured = lower.index(MEASUREMENT) if MEASUREMENT in lower else None
    if measured is not None and not at.is_string(table.column(measured).type):
        measured = None
    columns = [_values(column.combine_chunks()) for column in table.columns]
    times = _times(table.column(at_time)) if at_time is not None else [None] * table.num_rows
    texts = table.column(measured).to_pylist() if measured is not None else []
    for i in range(table.num_rows):
        measurement = "rows" if measured is None else _NONE
        fields = []
        for k, name in enumerate(names):
            value = columns[k][i]
            if k == at_time or value is None:
                continue
            if k == measured and _plain_measurement(texts[i]):
                measurement = _SPECIAL.sub(r"\\\g<0>", texts[i])
                continue
            fields.append(f"{name}={value}")
        time = "" if times[i] is None else f" {times[i]}"
        yield f"{measurement} {','.join(fields) or f'{_EMPTY}=true'}{time}\n"


def _key(name: str) -> str:
    if _BREAKS.search(name):
        raise UsageError(
            "CANNOT_ENCODE",
            f"the line protocol cannot have a backslash or a line end in the name {name!r}",
        )
    return _SPECIAL.sub(r"\\\g<0>", name)


def _plain_measurement(text: str) -> bool:
    """Whether a text can be a measurement; others are fields."""
    odd = text in ("", _NONE) or text != text.strip() or text[0] in '#"'
    return not odd and not _BREAKS.search(text)


def _is_time(kind: pa.DataType) -> bool:
    return bool(at.is_timestamp(kind) or at.is_int64(kind))


def _times(column: pa.ChunkedArray) -> list[int | None]:
    if at.is_timestamp(column.type):
        found = column.cast(pa.int64()).to_pylist()
        return [None if value is None else value * 1000 for value in found]
    return list(column.to_pylist())


def _values(column: pa.Array) -> list[str | None]:
    """A column as field values; NULL is none."""
    kind = column.type
    texts = write_texts(pa.table({"x": column}))["x"]
    if at.is_boolean(kind):
        return texts
    if at.is_integer(kind):
        return [None if text is None else f"{text}i" for text in texts]
    if at.is_floating(kind):
        finite = pc.is_finite(column).to_pylist()
        return [t if fine or t is None else f'"{t}"' for t, fine in zip(texts, finite, strict=True)]
    return [None if text is None else _quoted(text) for text in texts]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
