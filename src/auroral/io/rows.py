"""What `enqueue` takes: dicts, tuples, Arrow and pandas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pyarrow as pa

from auroral.errors import UsageError
from auroral.io.batches import EncodedBatch
from auroral.io.chunk import Chunk
from auroral.io.fit import HIDDEN, KEPT, Extra, fit_columns, given_by, match_columns, others
from auroral.io.readers.assemble import Assembler, RecordPlace, Records
from auroral.io.readers.text import Parsed, parse
from auroral.io.values import ColumnReader
from auroral.network.types import Schema, Type

_ABSENT = object()
_AT = ColumnReader(Type("double"))


class RowReader:
    """Turns batches of one stream into chunks; made once, so that a small batch is cheap.

    `extra` says what becomes of a row with fields that the schema does not have: it is a dead
    letter (`reject`), these fields are dropped (`ignore`), or the field `_extra` receives them
    as JSON (`keep`). Columns of an Arrow table are fields, too.

    >>> reader = RowReader("reports", Schema.parse("sid int, pos int"))
    >>> chunk = reader.read([{"sid": 1, "pos": 3}, {"sid": "x"}, (2, None)])
    >>> chunk.tuples.to_pylist()
    [{'sid': 1, 'pos': 3}, {'sid': 2, 'pos': None}]
    >>> chunk.dead[0].reason
    "sid: expected int, found 'x'"
    """

    def __init__(
        self,
        stream: str,
        schema: Schema,
        *,
        progress_on: str | None = None,
        by: Sequence[str] = (),
        place: str = "enqueue",
        extra: Extra = "reject",
    ):
        try:
            self.given = given_by(schema, extra)
        except UsageError as error:
            raise error.at(f"stream {stream}") from None
        """The fields that rows have themselves."""
        self.assembler = Assembler(stream, schema, progress_on, by)
        self.schema = schema
        self.place = place
        self.extra: Extra = extra
        self._columns = [ColumnReader(f.type, loose=extra == "ignore") for f in self.given]
        self._names = self.given.names
        self._width = len(self.given)
        self._lower = {name.lower(): name for name in (*self._names, *HIDDEN)}
        self._kept = [f.name.lower() for f in schema].index(KEPT) if extra == "keep" else None
        progress = self.assembler.progress
        self._punctuation = ColumnReader(progress.type if progress else Type("string"))
        pick = itemgetter(*self._names) if self._names else None
        self._pick = (lambda row: (pick(row),)) if pick and self._width == 1 else pick

    def read(self, rows: Any, *, base: Any = None, skip: int = 0) -> Chunk:
        """The chunk a batch makes; a batch whose columns do not fit is an error.

        A chunk that was read by the declaration of the stream is taken as it is.
        """
        if isinstance(rows, Chunk):
            return rows
        if isinstance(rows, Mapping):
            return self.read_rows([rows], base=base, skip=skip)
        if isinstance(rows, EncodedBatch):
            return rows.chunk(self)
        if isinstance(rows, pa.RecordBatch):
            return self.read_table(pa.Table.from_batches([rows]), base=base, skip=skip)
        if isinstance(rows, pa.Table):
            return self.read_table(rows, base=base, skip=skip)
        if type(rows).__module__.startswith("pandas.") and hasattr(rows, "columns"):
            return self.read_table(_from_pandas(rows), base=base, skip=skip)
        if isinstance(rows, (str, bytes)) or not hasattr(rows, "__iter__"):
            raise UsageError(
                "BAD_BATCH",
                f"expected dicts, tuples, Arrow or pandas, found {type(rows).__name__}",
                where=self.assembler.stream,
            )
        return self.read_rows(rows if isinstance(rows, list) else list(rows), base=base, skip=skip)

    def read_table(self, table: pa.Table, *, base: Any = None, skip: int = 0) -> Chunk:
        """The chunk of an Arrow table; zero-copy if its types are the schema's."""
        if self._kept is None and table.schema.equals(self.assembler.arrow):
            return Chunk.of_tuples(table, base=base, skip=skip)
        try:
            fitted = fit_columns(table, self.given, self.extra)
        except UsageError as error:
            raise error.at(self.assembler.stream) from None
        places = match_columns(table.column_names, self.given)
        kept = None
        if self._kept is not None:
            kept = table.select(others(table.column_names, places)).to_pylist()
        records = self.records(table.num_rows, fitted, kept)
        if "_at" in places:
            records.at = self._seconds(table.column(places["_at"]))
        if "_punctuation" in places:
            values = table.column(places["_punctuation"]).to_pylist()
            self._punctuate(records, values)
        rows = RecordPlace(
            self.place, lambda _: None, lambda i: shown(table.slice(i, 1).to_pylist()[0])
        )
        return self.assembler.chunk(records, rows, base, skip)

    def read_rows(
        self,
        rows: Sequence[Any],
        *,
        base: Any = None,
        skip: int = 0,
        place: RecordPlace | None = None,
        timed: bool | None = None,
        broken: dict[int, str] | None = None,
    ) -> Chunk:
        """The chunk of dicts and tuples; `timed` says whether `_at` is due (None: if any has it).

        Rows whose number is in `broken` are dead letters already.
        """
        records = self._plain(rows) if timed is None and not broken else None
        records = records or self._regular(rows, timed, dict(broken or {}))
        where = place or RecordPlace(self.place, lambda _: None, lambda i: shown(rows[i]))
        return self.assembler.chunk(records, where, base, skip)

    def read_records(self, rows: Sequence[Any], broken: dict[int, str]) -> Records:
        """The records of rows that carry no `_at`, for who makes chunks of them itself."""
        return self._regular(rows, False, dict(broken))

    def _plain(self, rows: Sequence[Any]) -> Records | None:
        """Rows that all have exactly the schema's fields: no row is looked at twice."""
        if not rows or self._pick is None or self._kept is not None:
            return None
        kinds = set(map(type, rows))
        exact = set(map(len_or_none, rows)) == {self._width}
        if not exact and not (
            self.extra == "ignore" and kinds == {dict} and self.are_others(*rows)
        ):
            return None
        try:
            if kinds == {dict}:
                rows = list(map(self._pick, rows))
            elif kinds != {tuple}:
                return None
        except KeyError:
            return None
        return self._records(len(rows), list(zip(*rows, strict=True)))

    def are_others(self, *names: Iterable[Any]) -> bool:
        """Whether names that are no fields exactly as written are none in other letters either."""
        found = set[Any]().union(*names).difference(self._names)
        return not any(str(name).lower() in self._lower for name in found)

    def _records(
        self, count: int, columns: Sequence[Sequence[Any]], kept: Sequence[Any] | None = None
    ) -> Records:
        read = [column.read(values) for column, values in zip(self._columns, columns, strict=True)]
        return self.records(count, read, kept)

    def records(self, count: int, read: Sequence[Parsed], kept: Sequence[Any] | None) -> Records:
        """The records of columns as read; `kept` are each row's other fields, for `_extra`."""
        read = list(read)
        if self._kept is not None and kept is not None:
            read.insert(self._kept, (pa.array(map(as_json, kept), pa.string()), {}))
        return Records(count, [array for array, _ in read], [wrong for _, wrong in read])

    def _regular(self, rows: Sequence[Any], timed: bool | None, broken: dict[int, str]) -> Records:
        columns: dict[str, list[Any]] = {name: [None] * len(rows) for name in self._names}
        hidden: dict[str, list[Any]] = {name: [_ABSENT] * len(rows) for name in HIDDEN}
        every = {**columns, **hidden}
        kept: list[Any] | None = None if self._kept is None else [{} for _ in rows]
        for i, row in enumerate(rows):
            if i in broken:
                continue
            if isinstance(row, Mapping):
                why = self._spread(row, i, every, kept[i] if kept else {})
            elif isinstance(row, (tuple, list)):
                fits = len(row) == self._width
                why = None if fits else f"expected {self._width} values, found {len(row)}"
                for name, value in zip(self._names, row, strict=False):
                    columns[name][i] = value
            else:
                why = f"expected a dict or a tuple, found {type(row).__name__}"
            if why:
                broken[i] = why
        records = self._records(len(rows), list(columns.values()), kept)
        records.broken = broken
        self._arrivals(records, hidden["_at"], timed)
        points = [None if v is _ABSENT else v for v in hidden["_punctuation"]]
        if any(v is not None for v in points):
            self._punctuate(records, points)
        return records

    def _spread(
        self, row: Mapping[Any, Any], i: int, every: dict[str, list[Any]], kept: dict[str, Any]
    ) -> str | None:
        for key, value in row.items():
            name = key if key in every else self._lower.get(str(key).lower())
            if name is None:
                if self.extra == "reject":
                    return f"there is no field {key!s}"
                kept[str(key)] = value
                continue
            if name != key and name in row:
                return f"the field {name} occurs twice"
            every[name][i] = value
        return None

    def _arrivals(self, records: Records, values: list[Any], timed: bool | None) -> None:
        if timed is None:
            timed = any(v is not _ABSENT for v in values)
        if timed:
            absent = [None if v is _ABSENT else v for v in values]
            records.at, records.at_wrong = _AT.read(absent)
            return
        for i, value in enumerate(values):
            if value is not _ABSENT:
                records.broken.setdefault(i, "_at: the rows before have none")

    def _punctuate(self, records: Records, values: list[Any]) -> None:
        """Read `_punctuation`; its text is read as in CSV."""
        values = [None if v == "" else v for v in values]
        column = self._punctuation
        if all(v is None or isinstance(v, str) for v in values):
            found = parse(pa.array(values, pa.string()), column.type)
        else:
            found = column.read(values)
        records.punctuation, records.punctuation_wrong = found

    def _seconds(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        try:
            return column.cast(pa.float64(), safe=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise UsageError(
                "BAD_BATCH",
                f"column _at: expected seconds, found {column.type}",
                where=self.assembler.stream,
            ) from None


def to_chunk(
    stream: str,
    rows: Any,
    schema: Schema,
    *,
    progress_on: str | None = None,
    by: Sequence[str] = (),
) -> Chunk:
    """A batch as a chunk; who has many should keep a `RowReader`."""
    return RowReader(stream, schema, progress_on=progress_on, by=by).read(rows)


def shown(row: Any) -> str:
    """A row as a dead letter shows it: JSON where that is possible."""
    try:
        return json.dumps(row, default=str, ensure_ascii=False).encode(errors="replace").decode()
    except (TypeError, ValueError, RecursionError):
        return ascii(row)


def as_json(fields: Mapping[str, Any]) -> str | None:
    """The fields that are not NULL as a JSON object; NULL if there are none.

    >>> as_json({"a": 1, "b": None, "c": Decimal("1.5")}), as_json({"b": None})
    ('{"a": 1, "c": 1.5}', None)
    """
    plain = {
        name: float(value) if isinstance(value, Decimal) else value
        for name, value in fields.items()
        if value is not None
    }
    return shown(plain) if plain else None


def len_or_none(row: Any) -> int | None:
    try:
        return len(row)
    except TypeError:
        return None


def _from_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        why = "; ".join(map(str, error.args))
        raise UsageError("BAD_BATCH", f"pandas to Arrow: {why}") from None
