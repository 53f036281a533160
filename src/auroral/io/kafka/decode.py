"""Messages of a topic to records: values decoded many at once, metadata put beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from auroral.io.kafka.options import RAW, KafkaOptions
from auroral.io.readers import lexer
from auroral.io.readers.assemble import Column, Records
from auroral.io.readers.jsonl import JsonRecords
from auroral.io.readers.text import Parsed, parse
from auroral.io.rows import RowReader
from auroral.network.types import Field, Schema

_TOMBSTONE = "no value (a tombstone); declare a field that receives the key to take these"


class Decoder:
    """Turns messages into records of a stream's schema.

    A message that cannot be decoded is a broken record: it has a reason, and no value.
    """

    def __init__(
        self,
        stream: str,
        schema: Schema,
        options: KafkaOptions,
        *,
        progress_on: str | None = None,
        by: Sequence[str] = (),
    ):
        self.options = options
        self._schema = schema
        self._always = dict(options.metadata or {})
        self._else = options.fallbacks(schema)
        payload = options.payload(schema)
        if options.decode == "raw":
            payload = Schema(tuple(f for f in payload if f.name.lower() == RAW))
        self._payload = payload
        on = progress_on if progress_on is not None and _has(payload, progress_on) else None
        self._rows = RowReader(
            stream, payload, progress_on=on, by=by if on else (), extra=options.extra
        )
        self._json = JsonRecords(self._rows, timed=False)
        self._keyed = "key" in {*self._always.values(), *self._else.values()}
        self._values = {"json": self._from_json, "csv": self._from_csv, "raw": self._from_raw}

    def decode(self, messages: Sequence[Any]) -> Records:
        """The records of messages, in their order."""
        values = [message.value() for message in messages]
        empty = [i for i, value in enumerate(values) if value is None]
        if not empty:
            records = self._values[self.options.decode](values)
        else:
            full = [value for value in values if value is not None]
            records = self._with_empty(self._values[self.options.decode](full), empty, len(values))
        return self._with_metadata(records, messages)

    # ── values ──

    def _from_json(self, values: Sequence[bytes]) -> Records:
        data = b"\n".join(values)
        if values and data.count(b"\n") == len(values) - 1 and b"\r" not in data:
            records = self._json.read(data)
            if records is not None and records.count == len(values):
                return records
        rows, broken = self._json.exactly(values)
        return self._rows.read_records(rows, broken)

    def _from_csv(self, values: Sequence[bytes]) -> Records:
        width = len(self._payload)
        rows: list[Sequence[str | None]] = []
        broken: dict[int, str] = {}
        for i, value in enumerate(values):
            found = list(lexer.records(value.rstrip(b"\r\n")))
            why = found[0].broken if len(found) == 1 else f"expected one row, found {len(found)}"
            row: list[str | None] = [None] * width
            if not why and len(found[0].fields) != width:
                why = f"expected {width} fields, found {len(found[0].fields)}"
            if not why:
                try:
                    row = [None if f is None else f.decode() for f in found[0].fields]
                except UnicodeDecodeError:
                    why = "invalid UTF-8"
            if why:
                broken[i] = why
            rows.append(row)
        columns = zip(*rows, strict=True) if rows else [()] * width
        fields = zip(columns, self._payload, strict=True)
        read = [parse(pa.array(texts, pa.string()), f.type) for texts, f in fields]
        return Records(len(rows), [c for c, _ in read], [w for _, w in read], broken)

    def _from_raw(self, values: Sequence[bytes]) -> Records:
        column, wrong = _bytes(values, self._payload.fields[0])
        return Records(len(values), [column], [wrong])

    def _with_empty(self, records: Records, empty: Sequence[int], count: int) -> Records:
        """The records with those of tombstones, whose fields are NULL, in their places."""
        mask = np.ones(count, bool)
        mask[list(empty)] = False
        places = np.flatnonzero(mask)
        order = np.zeros(count, np.int64)
        order[mask] = np.arange(records.count)
        index = pa.array(order, mask=~mask)

        def moved(reasons: dict[int, str]) -> dict[int, str]:
            return {int(places[i]): why for i, why in reasons.items()}

        broken = moved(records.broken)
        if not self._keyed and self.options.decode != "raw":
            broken |= dict.fromkeys(empty, _TOMBSTONE)
        points = records.punctuation
        return Records(
            count,
            [
                column.take(index) if records.count else pa.nulls(count, column.type)
                for column in records.columns
            ],
            [moved(reasons) for reasons in records.wrong],
            broken,
            punctuation=None if points is None else points.take(index),
            punctuation_wrong=moved(records.punctuation_wrong),
        )

    # ── metadata ──

    def _with_metadata(self, records: Records, messages: Sequence[Any]) -> Records:
        if not self._always and not self._else:
            return records
        own = dict(
            zip(self._payload.names, zip(records.columns, records.wrong, strict=True), strict=True)
        )
        columns: list[Column] = []
        wrong: list[dict[int, str]] = []
        for field in self._schema:
            column, misfits = own.get(field.name, (None, {}))
            kind = self._always.get(field.name) or self._else.get(field.name)
            if kind is not None and (column is None or column.null_count):
                found, bad = _METADATA[kind](messages, field)
                if column is None:
                    column, misfits = found, bad
                else:
                    missing = pc.is_null(column).to_numpy(zero_copy_only=False)
                    column = pc.coalesce(column, found)
                    misfits = {**{i: why for i, why in bad.items() if missing[i]}, **misfits}
            columns.append(column)
            wrong.append(misfits)
        return Records(
            records.count,
            columns,
            wrong,
            records.broken,
            punctuation=records.punctuation,
            punctuation_wrong=records.punctuation_wrong,
        )


def _has(schema: Schema, name: str) -> bool:
    return name.lower() in {field.name.lower() for field in schema}


def _bytes(values: Sequence[bytes | None], field: Field) -> Parsed:
    """Bytes as a column, as text if the field is; what is no UTF-8 does not fit."""
    column = pa.array(values, pa.binary())
    if field.type.name == "binary":
        return column, {}
    try:
        return column.cast(pa.string()), {}
    except pa.ArrowInvalid:
        return _texts(values)


def _texts(values: Sequence[bytes | None]) -> Parsed:
    texts: list[str | None] = []
    wrong: dict[int, str] = {}
    for i, value in enumerate(values):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            texts.append(None)
            wrong[i] = "invalid UTF-8"
    return pa.array(texts, pa.string()), wrong


def _plain(read: Callable[[Any], Any]) -> Callable[[Sequence[Any], Field], Parsed]:
    def column(messages: Sequence[Any], field: Field) -> Parsed:
        return pa.array([read(message) for message in messages], field.type.arrow()), {}

    return column


def _timestamps(messages: Sequence[Any], field: Field) -> Parsed:
    found = [message.timestamp() for message in messages]
    times = [ms if kind else None for kind, ms in found]
    if field.type.name == "bigint":
        return pa.array(times, pa.int64()), {}
    zone = "UTC" if field.type.name == "timestamp" else None
    return pa.array(times, pa.timestamp("ms", zone)).cast(field.type.arrow()), {}


def _keys(messages: Sequence[Any], field: Field) -> Parsed:
    return _bytes([message.key() for message in messages], field)


def _headers(messages: Sequence[Any], field: Field) -> Parsed:
    """Headers by name; of several with one name the last counts."""
    text = field.type.children[1].type.name == "string"
    rows: list[dict[str, Any] | None] = []
    wrong: dict[int, str] = {}
    for i, message in enumerate(messages):
        found = dict(message.headers() or ())
        if text:
            try:
                found = {n: None if v is None else v.decode() for n, v in found.items()}
            except UnicodeDecodeError:
                found, wrong[i] = {}, "a header is invalid UTF-8"
        rows.append(found)
    return pa.array(
        [None if r is None else list(r.items()) for r in rows], field.type.arrow()
    ), wrong


_METADATA: dict[str, Callable[[Sequence[Any], Field], Parsed]] = {
    "topic": _plain(lambda message: message.topic()),
    "partition": _plain(lambda message: message.partition()),
    "offset": _plain(lambda message: message.offset()),
    "timestamp": _timestamps,
    "key": _keys,
    "headers": _headers,
}
