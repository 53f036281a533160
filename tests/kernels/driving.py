"""Run a kernel over events cut into steps, its state carried along; and random events for it."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from auroral.kernels.kernel import Appended, Context, Kernel
from auroral.progress.lowwater import GroupedLowWater, LowWater
from auroral.progress.values import to_mark

NOTHING = st.sampled_from([None, *range(1, 9)])
EPOCH = datetime(1970, 1, 1)
NAN, INF = float("nan"), float("inf")
_HUGE = 10**34
PROMOTED = {"promote_options": "permissive"}
KINDS: dict[pa.DataType, Callable[[int], Any]] = {
    pa.int64(): lambda n: n,
    pa.int32(): lambda n: n,
    pa.float64(): lambda n: n / 2,
    pa.date32(): lambda n: date(1970, 1, 10) + timedelta(days=n),
    pa.timestamp("us"): lambda n: EPOCH + timedelta(microseconds=n),
    pa.timestamp("us", "UTC"): lambda n: EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=n),
    pa.decimal128(9, 1): lambda n: Decimal(n).scaleb(-1),
    pa.decimal128(38, 2): lambda n: Decimal(n + _HUGE).scaleb(-2),
}
"""What attributes may be ordered on, and how a small number becomes a value of them."""


def marked(value: Any, kind: pa.DataType) -> Any:
    """A value in the units of marks; NULL and what is no number have none."""
    if value is None or value != value or value in (INF, -INF):
        return None
    return to_mark(value, kind.scale if pa.types.is_decimal(kind) else 0)


def reason(value: Any) -> str | None:
    """Why a value can not be judged, if it can not."""
    return "null" if value is None else "nan" if value != value or value in (INF, -INF) else None


@dataclass
class Ran:
    """What all steps together made: ports in order, and what was held after each step."""

    ports: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    held: list[int | None] = field(default_factory=list)
    stored: list[dict[str, int]] = field(default_factory=list)
    dead: list[tuple[str, str]] = field(default_factory=list)


def drive(
    kernel: Kernel,
    inputs: Sequence[pa.Table],
    marks: Sequence[Any],
    cuts: Sequence[int],
    *,
    ended: int | None = None,
    parquet: bool = False,
    static: int | None = None,
    clock: LowWater | None = None,
) -> Ran:
    """Run moments 0 … cuts[-1] − 1 in steps that end before each of `cuts`."""
    kernel = pickle.loads(pickle.dumps(kernel))
    state = {name: schema.empty_table() for name, schema in kernel.tables().items()}
    ran = Ran()
    first = 0
    for last in cuts:
        some = [
            table if at == static else _between(table, first, last)
            for at, table in enumerate(inputs)
        ]
        seen = tuple(mark.since(max(first - 1, 0)) for mark in marks)
        now = clock and clock.since(max(first - 1, 0)).until(last)
        emitted = kernel.step(some, state, Context(first, last, seen, now, ended))
        for port, table in emitted.ports.items():
            table.validate(full=True)
            ran.ports.setdefault(port, []).extend(table.to_pylist())
        for why, count in emitted.late.items():
            ran.late[why] = ran.late.get(why, 0) + count
        for name, changed in emitted.state.items():
            appended = isinstance(changed, Appended)
            table = changed.table if isinstance(changed, Appended) else changed
            assert table.schema.equals(kernel.tables()[name])
            assert not appended or table.num_rows
            table = _through_parquet(table) if parquet else table
            table = pa.concat_tables([state[name], table], **PROMOTED) if appended else table
            # Nobody promises in which order stored rows are read.
            state[name] = (
                table.take(pa.array(range(table.num_rows - 1, -1, -1), pa.int64()))
                if parquet
                else table
            )
        ran.dead += emitted.dead
        ran.held.append(emitted.held)
        ran.stored.append({name: table.num_rows for name, table in state.items()})
        first = last
    for rows in ran.ports.values():
        rows.sort(key=lambda row: (row["_seq"], row["_sub"]))
    return ran


def _between(table: pa.Table, first: int, last: int) -> pa.Table:
    seq = table["_seq"].to_pylist()
    chosen = [at for at, moment in enumerate(seq) if first <= moment < last]
    # A slice, so that offsets are not zero.
    return table.slice(chosen[0], len(chosen)) if chosen else table.slice(0, 0)


def _through_parquet(table: pa.Table) -> pa.Table:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, store_schema=False)  # as if others had written it
    return pq.read_table(buffer)


def plain(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that compare equal although they hold NaN."""
    return [{k: "nan" if v != v else v for k, v in row.items()} for row in rows]


def as_table(rows: Sequence[dict[str, Any]], columns: dict[str, pa.DataType]) -> pa.Table:
    """Rows of an input, with the hidden columns."""
    hidden = {"_seq": pa.int64(), "_ts": pa.int64()}
    if any(row["_sub"] for row in rows):
        hidden["_sub"] = pa.binary()
    kinds = hidden | columns
    schema = pa.schema([pa.field(name, kind, name not in hidden) for name, kind in kinds.items()])
    return pa.table([pa.array([row[name] for row in rows], kinds[name]) for name in kinds], schema)


@st.composite
def arrivals(
    draw: st.DrawFn,
    columns: dict[str, st.SearchStrategy[Any]],
    *,
    subs: bool = True,
    most: int = 24,
) -> list[dict[str, Any]]:
    """Tuples in order of arrival, sometimes several of one moment."""
    rows: list[dict[str, Any]] = []
    moment = 1
    for _ in range(draw(st.integers(0, most))):
        again = subs and rows and draw(st.integers(0, 4)) == 0
        moment += 0 if again else draw(st.integers(1, 2))
        sub = bytes([len(rows)]) if subs and again else b""
        row = {"_seq": moment, "_ts": draw(st.integers(0, 50)), "_sub": sub}
        rows.append(row | {name: draw(values) for name, values in columns.items()})
    return rows


def ons(kind: pa.DataType, odd: bool = True) -> st.SearchStrategy[Any]:
    """Values of an ordered attribute; `odd`: NULL, NaN and infinities too."""
    values: st.SearchStrategy[Any] = st.integers(-6, 9).map(KINDS[kind])
    if odd and kind == pa.float64():
        values = st.one_of(values, values, values, st.sampled_from([None, NAN, INF, -INF, -0.0]))
    elif odd:
        values = st.one_of(values, values, values, values, st.none())
    return values


@st.composite
def marks(draw: st.DrawFn, kind: pa.DataType, last: int, ended: int | None = None) -> LowWater:
    """A mark that rises somehow while moments pass."""
    moments = sorted(draw(st.sets(st.integers(0, last), max_size=6)))
    level = st.integers(-6, 12).map(lambda n: marked(KINDS[kind](n), kind))
    steps = [(moment, draw(level)) for moment in moments]
    made = LowWater.of(steps)
    return made if ended is None else made.end(ended)


@st.composite
def grouped_marks(
    draw: st.DrawFn,
    kind: pa.DataType,
    last: int,
    groups: Sequence[tuple[Any, ...]],
    ended: int | None,
) -> GroupedLowWater:
    """Marks of some of the groups."""
    some = [group for group in groups if draw(st.booleans())]
    each = {group: draw(marks(kind, last, ended)) for group in some}
    return GroupedLowWater(("g",), each, draw(marks(kind, last, ended)))


@st.composite
def orders(
    draw: st.DrawFn, kinds: Sequence[pa.DataType], last: int, ended: int | None
) -> tuple[list[int | None], list[bool], list[LowWater | GroupedLowWater]]:
    """How inputs are ordered: slack of each, whether it is by groups, and its marks."""
    slack: list[int | None] = [draw(st.sampled_from([None, None, 0, 1, 2])) for _ in kinds]
    by = [draw(st.booleans()) for _ in kinds]
    grouped = [each is None and draw(st.booleans()) for each in slack]
    names = [(None,), ("a",), ("b",)]
    found: list[LowWater | GroupedLowWater] = []
    for kind, some in zip(kinds, grouped, strict=True):
        if some:
            found.append(draw(grouped_marks(kind, last, names, ended)))
        else:
            found.append(draw(marks(kind, last, ended)))
    return slack, by, found


@st.composite
def clocks(draw: st.DrawFn, last: int) -> LowWater:
    """A clock that ticks at some moments, in µs."""
    moments = sorted(draw(st.sets(st.integers(0, last), max_size=8)))
    times, now = [], draw(st.integers(0, 3))
    for moment in moments:
        now += draw(st.integers(1, 4))
        times.append((moment, now))
    return LowWater.of(times)


@dataclass(frozen=True)
class Timeout:
    """How long tuples are kept by the clock, if there is a limit."""

    clock: LowWater
    us: int | None

    def reached(self, row: dict[str, Any]) -> int:
        return self.clock.at(row["_seq"]) or 0

    def meet(self, one: dict[str, Any], other: dict[str, Any]) -> bool:
        return self.us is None or abs(self.reached(one) - self.reached(other)) <= self.us

    def is_over(self, row: dict[str, Any], moment: int) -> bool:
        return self.us is not None and (self.clock.at(moment) or 0) > self.reached(row) + self.us


@st.composite
def timeouts(draw: st.DrawFn, last: int) -> Timeout:
    return Timeout(draw(clocks(last)), draw(st.sampled_from([None, 1, 3, 6])))


@st.composite
def cuts(draw: st.DrawFn, last: int) -> list[int]:
    """Where steps end; the last one ends before `last`."""
    some = draw(st.sets(st.integers(1, last), max_size=5))
    return sorted(some | {last})


def end_of(*inputs: Sequence[dict[str, Any]]) -> int:
    """A moment after everything that arrives."""
    return max((row["_seq"] for rows in inputs for row in rows), default=0) + 3
