"""BSort: as a one-at-a-time model does it, however the events are cut into steps."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.kernels.bsort import BSortKernel
from auroral.kernels.ordering import sortable
from auroral.progress.lowwater import LowWater

from . import driving
from .driving import KINDS, as_table, drive, plain

GROUPS = [None, "a", "b"]


def rank(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    return (2,) if value != value else (1, value)


def released(row: dict[str, Any], moment: int, kind: pa.DataType) -> dict[str, Any]:
    on = sortable([pa.array([row["f0"]], kind)])[0].as_py()
    sub = on + row["_seq"].to_bytes(8, "big") + row["_sub"]
    return row | {"_seq": moment, "_sub": sub}


def buffered_model(
    rows: list[dict[str, Any]], slack: int, last: int, ended: int | None, kind: pa.DataType
) -> tuple[list[dict[str, Any]], list[int]]:
    """Hold `slack` tuples per group; what comes out, and how many are held after each moment."""
    buffers: dict[Any, list[tuple[Any, int, dict[str, Any]]]] = {}
    out, held = [], []
    for moment in range(last):
        for number, row in enumerate(rows):
            if row["_seq"] != moment:
                continue
            buffer = buffers.setdefault(row["f1"], [])
            buffer.append((rank(row["f0"]), number, row))
            if len(buffer) > slack:
                least = min(buffer, key=lambda item: item[:2])
                buffer.remove(least)
                first = b"\x01" if moment == ended else b""
                out.append(least[2] | {"_seq": moment, "_sub": first + row["_sub"]})
        if moment == ended:
            left = sorted((item for b in buffers.values() for item in b), key=lambda item: item[:2])
            rest = [released(item[2], moment, kind) for item in left]
            out += [row | {"_sub": b"\x02" + row["_sub"]} for row in rest]
            buffers = {}
        held.append(sum(map(len, buffers.values())))
    return out, held


def kernel(kind: pa.DataType, slack: int | None, **more: Any) -> BSortKernel:
    types = (("f0", kind), ("f1", pa.string()), ("f2", pa.int64()))
    return BSortKernel("f0", ("f1",), slack, ("f2", "f0"), types, **more)


def shape(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return plain([{k: row[k] for k in ("_seq", "_ts", "_sub", "f2", "f0")} for row in rows])


@given(st.data())
def test_with_slack(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(KINDS)))
    slack = data.draw(st.sampled_from([0, 1, 2, 3, 5, 33, 40]))
    groups = st.sampled_from(GROUPS if data.draw(st.booleans()) else [None])
    columns = {"f0": driving.ons(kind), "f1": groups, "f2": st.integers(0, 99)}
    rows = data.draw(driving.arrivals(columns, most=60 if slack > 5 else 24))
    last = driving.end_of(rows)
    ended = data.draw(st.sampled_from([None, last - 1]))
    cuts = data.draw(driving.cuts(last))
    table = as_table(rows, {"f0": kind, "f1": pa.string(), "f2": pa.int64()})
    parquet = data.draw(st.booleans())
    ran = drive(kernel(kind, slack), [table], [LowWater()], cuts, ended=ended, parquet=parquet)
    want, held = buffered_model(rows, slack, last, ended, kind)
    assert want == sorted(want, key=lambda row: (row["_seq"], row["_sub"]))
    assert plain(ran.ports[""]) == shape(want)
    assert ran.held == [held[cut - 1] for cut in cuts]
    assert [stored["held"] for stored in ran.stored] == ran.held
    assert not ran.late


def sorted_model(
    rows: list[dict[str, Any]], mark: Any, last: int, kind: pa.DataType
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, int], list[int]]:
    """Hold tuples until the mark passes them: what comes out, what is late and why, the held."""
    buffer: list[dict[str, Any]] = []
    out, late, held, why = [], [], [], dict[str, int]()

    def at(row: dict[str, Any], moment: int) -> Any:
        return mark.at(moment) if isinstance(mark, LowWater) else mark.at(moment, (row["f1"],))

    for moment in range(last):
        for row in (row for row in rows if row["_seq"] == moment):
            below = at(row, moment - 1)
            on = driving.marked(row["f0"], kind)
            reason = driving.reason(row["f0"])
            if reason is None and below is not None and on < below:
                reason = "late"
            if reason is None:
                buffer.append(row)
            else:
                late.append(row)
                why[reason] = why.get(reason, 0) + 1
        for row in list(buffer):
            now = at(row, moment)
            if now is not None and now > driving.marked(row["f0"], kind):
                buffer.remove(row)
                out.append(released(row, moment, kind))
        held.append(len(buffer))
    return out, late, why, held


@given(st.data())
def test_with_punctuation(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(KINDS)))
    columns = {"f0": driving.ons(kind), "f1": st.sampled_from(GROUPS), "f2": st.integers(0, 99)}
    rows = data.draw(driving.arrivals(columns))
    last = driving.end_of(rows)
    ended = data.draw(st.sampled_from([None, last - 1]))
    cuts = data.draw(driving.cuts(last))
    grouped = data.draw(st.booleans())
    keys = [(group,) for group in GROUPS]
    mark = data.draw(
        driving.grouped_marks(kind, last - 1, keys, ended)
        if grouped
        else driving.marks(kind, last - 1, ended)
    )
    box = kernel(kind, None, late_fields=("f2",), by_mark=("f1",) if grouped else ())
    table = as_table(rows, {"f0": kind, "f1": pa.string(), "f2": pa.int64()})
    ran = drive(box, [table], [mark], cuts, ended=ended, parquet=data.draw(st.booleans()))
    want, late, why, held = sorted_model(rows, mark, last, kind)
    want.sort(key=lambda row: (row["_seq"], row["_sub"]))
    assert plain(ran.ports[""]) == shape(want)
    names = ("_seq", "_ts", "_sub", "f2")
    assert ran.ports["late"] == [{name: row[name] for name in names} for row in late]
    assert ran.late == why
    assert ran.held == [held[cut - 1] for cut in cuts]


@pytest.mark.parametrize("cuts", [[20], [4, 7, 20], list(range(1, 21))])
def test_figure_8(cuts: list[int]) -> None:
    values = [1, 3, 1, 2, 4, 4, 8, 3, 4, 4]
    table = pa.table({"_seq": range(1, 11), "_ts": range(10), "f0": values})
    box = BSortKernel("f0", (), 2, ("f0",), (("f0", pa.int64()),))
    ran = drive(box, [table], [LowWater()], cuts)
    assert [row["f0"] for row in ran.ports[""]] == [1, 1, 2, 3, 4, 3, 4, 4]
    assert [row["_seq"] for row in ran.ports[""]] == [3, 4, 5, 6, 7, 8, 9, 10]
    assert ran.held[-1] == 2


def test_many_groups() -> None:
    n = 100_000
    table = pa.table(
        {"_seq": range(3 * n), "_ts": [0] * (3 * n), "f0": [2] * n + [1] * n + [3] * n}
    ).append_column("f1", pa.array([*range(n)] * 3))
    types = (("f0", pa.int64()), ("f1", pa.int64()))
    box = BSortKernel("f0", ("f1",), 1, ("f0",), types)
    ran = drive(box, [table], [LowWater()], [3 * n])
    assert [row["f0"] for row in ran.ports[""]] == [1] * n + [2] * n
    assert ran.held == [n]


def test_dead_tuples_do_not_pile_up() -> None:
    table = pa.table({"_seq": range(1, 101), "_ts": range(100), "f0": range(100)})
    mark = LowWater.of([(n, n - 3) for n in range(1, 101)])
    box = BSortKernel("f0", (), None, (), (("f0", pa.int64()),))
    ran = drive(box, [table], [mark], list(range(2, 102)))
    assert max(stored["held"] for stored in ran.stored) <= 8
    assert ran.held[50:60] == [3] * 10


@given(st.data())
def test_by_arrival(data: st.DataObject) -> None:
    """On tup# the first of slack + 1 tuples of a group leaves; without slack each at once."""
    slack = data.draw(st.sampled_from([None, 0, 1, 3]))
    columns = {"f0": st.integers(0, 9), "f1": st.sampled_from(GROUPS), "f2": st.integers(0, 99)}
    rows = data.draw(driving.arrivals(columns))
    last = driving.end_of(rows)
    ended = data.draw(st.sampled_from([None, last - 1]))
    types = (("f0", pa.int64()), ("f1", pa.string()), ("f2", pa.int64()))
    box = BSortKernel(None, ("f1",), slack, ("f2", "f0"), types)
    parquet, cuts = data.draw(st.booleans()), data.draw(driving.cuts(last))
    ran = drive(
        box, [as_table(rows, dict(types))], [LowWater()], cuts, ended=ended, parquet=parquet
    )
    out: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for row in rows:
        waiting.append(row)
        mine = [one for one in waiting if one["f1"] == row["f1"]]
        if len(mine) > (slack or 0):
            waiting = [one for one in waiting if one is not mine[0]]
            first = b"\x01" if row["_seq"] == ended else b""
            out.append(mine[0] | {"_seq": row["_seq"], "_sub": first + row["_sub"]})
    if ended is not None:
        at = [one["_seq"].to_bytes(8, "big") + one["_sub"] for one in waiting]
        out += [
            one | {"_seq": ended, "_sub": b"\x02" + sub}
            for one, sub in zip(waiting, at, strict=True)
        ]
        waiting = []
    assert shape(ran.ports.get("", [])) == shape(out)
    assert (ran.held[-1], ran.late) == (len(waiting), {})
