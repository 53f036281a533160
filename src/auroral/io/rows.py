"""What `enqueue` takes: dicts, tuples, Arrow and pandas."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from auroral.errors import UsageError
from auroral.io.assemble import Assembler, Place, Records
from auroral.io.chunk import Chunk
from auroral.io.fit import EXTRA, fit_columns, match_columns
from auroral.io.text import parse
from auroral.io.values import Column
from auroral.network.types import Schema, Type

_ABSENT = object()
_AT = Column(Type("double"))


class RowReader:
    """Turns batches of one stream into chunks; made once, so that a small batch is cheap.

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
    ):
        self.assembler = Assembler(stream, schema, progress_on, by)
        self.schema = schema
        self.place = place
        self._columns = [Column(field.type) for field in schema]
        self._names = schema.names
        self._width = len(schema)
        self._lower = {name.lower(): name for name in (*schema.names, *EXTRA)}
        progress = self.assembler.progress
        self._punctuation = Column(progress.type if progress else Type("string"))
        pick = itemgetter(*schema.names) if schema.fields else None
        self._pick = (lambda row: (pick(row),)) if pick and self._width == 1 else pick

    def read(self, rows: Any, *, base: Any = None, skip: int = 0) -> Chunk:
        """The chunk a batch makes; a batch whose columns do not fit is an error."""
        if isinstance(rows, Mapping):
            return self.read_rows([rows], base=base, skip=skip)
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
        if table.schema.equals(self.assembler.arrow):
            return Chunk.of_tuples(table, base=base, skip=skip)
        try:
            fitted = fit_columns(table, self.schema)
        except UsageError as error:
            raise error.at(self.assembler.stream) from None
        places = match_columns(table.column_names, self.schema)
        columns, wrong = [column for column, _ in fitted], [why for _, why in fitted]
        records = Records(table.num_rows, columns, wrong)
        if "_at" in places:
            records.at = self._seconds(table.column(places["_at"]))
        if "_punctuation" in places:
            values = table.column(places["_punctuation"]).to_pylist()
            self._punctuate(records, values)
        rows = Place(self.place, lambda _: None, lambda i: shown(table.slice(i, 1).to_pylist()[0]))
        return self.assembler.chunk(records, rows, base, skip)

    def read_rows(
        self,
        rows: Sequence[Any],
        *,
        base: Any = None,
        skip: int = 0,
        place: Place | None = None,
        timed: bool | None = None,
        broken: dict[int, str] | None = None,
    ) -> Chunk:
        """The chunk of dicts and tuples; `timed` says whether `_at` is due (None: if any has it).

        Rows whose number is in `broken` are dead letters already.
        """
        records = self._plain(rows) if timed is None and not broken else None
        records = records or self._regular(rows, timed, dict(broken or {}))
        where = place or Place(self.place, lambda _: None, lambda i: shown(rows[i]))
        return self.assembler.chunk(records, where, base, skip)

    def _plain(self, rows: Sequence[Any]) -> Records | None:
        """Rows that all have exactly the schema's fields: no row is looked at twice."""
        if not rows or set(map(len_or_none, rows)) != {self._width} or self._pick is None:
            return None
        kinds = set(map(type, rows))
        try:
            if kinds == {dict}:
                rows = list(map(self._pick, rows))
            elif kinds != {tuple}:
                return None
        except KeyError:
            return None
        return self._records(len(rows), list(zip(*rows, strict=True)))

    def _records(self, count: int, columns: Sequence[Sequence[Any]]) -> Records:
        read = [column.read(values) for column, values in zip(self._columns, columns, strict=True)]
        return Records(count, [array for array, _ in read], [wrong for _, wrong in read])

    def _regular(self, rows: Sequence[Any], timed: bool | None, broken: dict[int, str]) -> Records:
        columns: dict[str, list[Any]] = {name: [None] * len(rows) for name in self._names}
        extra: dict[str, list[Any]] = {name: [_ABSENT] * len(rows) for name in EXTRA}
        every = {**columns, **extra}
        for i, row in enumerate(rows):
            if i in broken:
                continue
            if isinstance(row, Mapping):
                why = self._spread(row, i, every)
            elif isinstance(row, (tuple, list)):
                fits = len(row) == self._width
                why = None if fits else f"expected {self._width} values, found {len(row)}"
                for name, value in zip(self._names, row, strict=False):
                    columns[name][i] = value
            else:
                why = f"expected a dict or a tuple, found {type(row).__name__}"
            if why:
                broken[i] = why
        records = self._records(len(rows), list(columns.values()))
        records.broken = broken
        self._arrivals(records, extra["_at"], timed)
        points = [None if v is _ABSENT else v for v in extra["_punctuation"]]
        if any(v is not None for v in points):
            self._punctuate(records, points)
        return records

    def _spread(self, row: Mapping[Any, Any], i: int, every: dict[str, list[Any]]) -> str | None:
        for key, value in row.items():
            name = key if key in every else self._lower.get(str(key).lower())
            if name is None:
                return f"there is no field {key!s}"
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
