"""Pages of long lists: which rows an answer has, and how to ask for those that follow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from auroral.io.values import ColumnReader, exact_number
from auroral.network.types import Schema
from auroral.server.problems import bad_query
from auroral.server.wire_rows import json_bytes, row_lists

_PLACE = "_place"
MOST_GIVEN = 1_000_000
"""So many rows of one moment can be passed over: an answer has to see all of them."""


@dataclass(frozen=True)
class Page:
    """Rows of a list; those that were left out can be asked for with the parameters `following`."""

    table: pa.Table
    truncated: bool = False
    following: Mapping[str, str] = field(default_factory=dict)


def first_rows(table: pa.Table, limit: int) -> Page:
    """The first rows of a table of which there are no other pages."""
    return Page(table.slice(0, limit), table.num_rows > limit)


def rows_after(table: pa.Table, key: Schema, after: str | None, limit: int) -> Page:
    """The rows of a table behind a value of its key, in the order of the key.

    Without a key they are counted instead. `after` is a JSON list.
    """
    if not len(key):
        return _rows_after_count(table, after, limit)
    table = table.sort_by([(name, "ascending") for name in key.names])
    first = 0 if after is None else _position_behind(table, key, after)
    shown = table.slice(first, limit)
    if first + limit >= table.num_rows or not shown.num_rows:
        return Page(shown, truncated=first + limit < table.num_rows)
    last = row_lists(shown.slice(shown.num_rows - 1).select(list(key.names)))[0]
    return Page(shown, True, {"after": json_bytes(last).decode()})


def _position_behind(table: pa.Table, key: Schema, after: str) -> int:
    """Where the rows behind a value of the key begin; the row itself may be gone."""
    columns = []
    given = _list(after, len(key))
    for one, value in zip(key, given, strict=True):
        column, wrong = ColumnReader(one.type).read([exact_number(value, one.type.name)])
        if wrong:
            raise bad_query("after", f"{one.name} as {one.type}", value)
        columns.append(pa.array(column, one.type.arrow()))
    names = list(key.names)
    mark = pa.table(columns, names)
    both = pa.concat_tables([table.select(names).cast(mark.schema), mark])
    both = both.append_column(_PLACE, pa.array(range(both.num_rows), pa.int64()))
    # Equal rows stay in their order, so the mark comes behind its own row.
    order = both.sort_by([(name, "ascending") for name in [*names, _PLACE]])
    return int(pc.index(order[_PLACE], table.num_rows).as_py())


def _rows_after_count(table: pa.Table, after: str | None, limit: int) -> Page:
    first = 0 if after is None else _list(after, 1)[0]
    if not isinstance(first, int) or isinstance(first, bool) or first < 0:
        raise bad_query("after", "a number of rows in a list", after)
    more = first + limit < table.num_rows
    following = {"after": f"[{first + limit}]"} if more and limit else {}
    return Page(table.slice(first, limit), more, following)


def _list(text: str, length: int) -> Sequence[object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or len(found) != length:
        raise bad_query("after", f"a JSON list of {length}", text)
    return found


@dataclass(frozen=True)
class HistoryCursor:
    """A place in kept history: below a moment, and before the last rows of that moment."""

    moment: int
    given: int
    """So many of the last rows of the moment were given already."""

    @staticmethod
    def parse(text: str) -> HistoryCursor:
        """Read `MOMENT.ROWS`, or `MOMENT` for all rows below it.

        >>> HistoryCursor.parse("17.2"), HistoryCursor.parse("17")
        (HistoryCursor(moment=17, given=2), HistoryCursor(moment=16, given=0))
        """
        moment, dot, given = text.partition(".")
        numbers = [moment, given] if dot else [moment]
        if not all(one.isascii() and one.isdecimal() and len(one) < 19 for one in numbers):
            raise bad_query("before", "a moment, or what the Link of an answer has", text)
        if dot and int(given) > MOST_GIVEN:
            raise bad_query("before", f"at most {MOST_GIVEN} rows of a moment", text)
        return HistoryCursor(int(moment), int(given)) if dot else HistoryCursor(int(moment) - 1, 0)

    def __str__(self) -> str:
        return f"{self.moment}.{self.given}"


def rows_before(found: pa.Table, cursor: HistoryCursor | None, limit: int) -> Page:
    """The latest rows before a place in history.

    `found` are the latest rows up to its moment, `wanted_rows` of them if there are so many.
    """
    if cursor is not None:
        at = pc.sum(pc.equal(found["_seq"], cursor.moment)).as_py() or 0
        found = found.slice(0, found.num_rows - min(cursor.given, at))
    left = max(found.num_rows - limit, 0)
    shown = found.slice(left)
    if not left:
        return Page(shown)
    first = int(shown["_seq"][0].as_py())
    given = int(pc.sum(pc.equal(shown["_seq"], first)).as_py())
    if cursor is not None and cursor.moment == first:
        given += cursor.given
    if given > MOST_GIVEN:
        return Page(shown, True)
    return Page(shown, True, {"before": str(HistoryCursor(first, given))})


def wanted_rows(cursor: HistoryCursor | None, limit: int) -> int:
    """How many rows `rows_before` has to see: one more than it gives, to know of others."""
    return limit + 1 + (0 if cursor is None else cursor.given)
