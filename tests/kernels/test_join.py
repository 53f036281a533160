"""Join: as a one-at-a-time model does it, however the events are cut into steps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auroral.kernels.arrivals import NUMBER
from auroral.kernels.join import JoinKernel
from auroral.progress.lowwater import END, GroupedLowWater, JointLowWater, LowWater

from . import driving
from .driving import INF, KINDS, NAN, Timeout, as_table, drive, plain, timeouts

Rows = list[dict[str, Any]]
NUMBERS = [kind for kind in KINDS if not pa.types.is_temporal(kind)]
WHOLE = (pa.int64(), pa.int32(), pa.float64())
KEYS = [None, "x", "x", "y"]
EMPTY = LowWater()


def number(value: Any, kind: pa.DataType) -> Any:
    """A value one can add to: floats stay floats, all else is exact."""
    if isinstance(value, float):
        return value
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    return Fraction(driving.marked(value, kind), 10**scale)


def unmarked(mark: Any, kind: pa.DataType) -> Any:
    if mark == END or isinstance(mark, float):
        return mark
    return Fraction(mark, 10 ** (kind.scale if pa.types.is_decimal(kind) else 0))


class Side:
    """One input: its progress, and what has been taken from it."""

    def __init__(
        self, kind: pa.DataType, slack: int | None, by: bool, mark: Any, numbered: bool = False
    ) -> None:
        self.kind, self.slack, self.by, self.mark = kind, slack, by, mark
        self.numbered, self.numbers = numbered, dict[int, int]()
        self.counts: dict[Any, int] = {}
        self.values: dict[Any, list[Any]] = {}
        self.taken: Rows = []
        self.late: Rows = []

    def _threshold(self, group: Any) -> Any:
        values = sorted(self.values.get(group, ()), reverse=True)
        assert self.slack is not None
        return values[self.slack] if len(values) > self.slack else None

    def on(self, row: dict[str, Any]) -> Any:
        return self.numbers[id(row)] if self.numbered else number(row["f0"], self.kind)

    def reason(self, row: dict[str, Any]) -> str | None:
        if self.numbered:
            group = row["f1"] if self.by else None
            self.counts[group] = self.numbers[id(row)] = self.counts.get(group, 0) + 1
            return None
        why = driving.reason(row["f0"])
        if why is not None:
            return why
        group = row["f1"] if self.by else None
        if self.slack is not None:
            below = self._threshold(group)
        elif isinstance(self.mark, LowWater):
            below = self.mark.at(row["_seq"] - 1)
        else:
            below = self.mark.at(row["_seq"] - 1, (row["f1"],))
        on = driving.marked(row["f0"], self.kind)
        if below is not None and on < below:
            return "late"
        if self.slack is not None:
            self.values.setdefault(group, []).append(on)
        return None

    def progress(self, moment: int, ended: int | None) -> Any:
        """What holds of everything still to come."""
        if self.numbered:
            count = None if self.by else self.counts.get(None, 0) + 1
            return END if ended is not None and moment >= ended else count
        if self.slack is not None:
            now = None if self.by else self._threshold(None)
            now = END if ended is not None and moment >= ended else now
        elif isinstance(self.mark, LowWater):
            now = self.mark.at(moment)
        else:
            all_of = [
                self.mark.others.at(moment),
                *(m.at(moment) for m in self.mark.groups.values()),
            ]
            now = None if None in all_of else min(all_of)
        return None if now is None else unmarked(now, self.kind)


def pair(left: dict[str, Any], right: dict[str, Any], left_later: bool) -> dict[str, Any]:
    later, partner = (left, right) if left_later else (right, left)
    sub = (b"\x00" if left_later else b"\x01") + later["_sub"]
    sub += partner["_seq"].to_bytes(8, "big") + partner["_sub"]
    return {
        "_seq": later["_seq"], "_ts": min(left["_ts"], right["_ts"]), "_sub": sub,
        "l_f3": left["f3"], "l_f0": left["f0"], "r_f3": right["f3"],
    }  # fmt: skip


def alike(left: dict[str, Any], right: dict[str, Any], keyed: bool) -> bool:
    return not keyed or (left["f2"] is not None and left["f2"] == right["f2"])


def band_model(
    sides: list[Side],
    rows: list[Rows],
    r0: Any,
    r1: Any,
    keyed: bool,
    last: int,
    ended: int | None,
    timeout: Timeout,
) -> tuple[Rows, dict[str, int], list[int]]:
    """Pairs in any order, late by reason, how many are needed after each moment."""
    out, why, held = [], dict[str, int](), []
    kept: list[Rows] = [[], []]

    def on(side: int, row: dict[str, Any]) -> Any:
        return sides[side].on(row)

    for moment in range(last):
        for side in (0, 1):
            for row in (row for row in rows[side] if row["_seq"] == moment):
                reason = sides[side].reason(row)
                if reason is not None:
                    why[reason] = why.get(reason, 0) + 1
                    sides[side].late.append(row)
                    continue
                for other in sides[1 - side].taken:
                    left, right = (row, other) if side == 0 else (other, row)
                    one, two = on(0, left), on(1, right)
                    near = one - r0 <= two <= one + r1
                    if near and alike(left, right, keyed) and timeout.meet(left, right):
                        out.append(pair(left, right, side == 0))
                sides[side].taken.append(row)
                if timeout.us is not None or not keyed or row["f2"] is not None:
                    kept[side].append(row)
        marks = [side.progress(moment, ended) for side in sides]
        kept[0] = [r for r in kept[0] if marks[1] is None or not marks[1] > on(0, r) + r1]
        kept[1] = [r for r in kept[1] if marks[0] is None or not marks[0] - r0 > on(1, r)]
        for side in (0, 1):
            stays = [row for row in kept[side] if not timeout.is_over(row, moment)]
            if len(stays) < len(kept[side]):
                why["timeout"] = why.get("timeout", 0) + len(kept[side]) - len(stays)
            kept[side] = stays
        held.append(len(kept[0]) + len(kept[1]))
    return out, why, held


def draw_rows(data: st.DataObject, kind: pa.DataType) -> Rows:
    columns = {
        "f0": driving.ons(kind),
        "f1": st.sampled_from([None, "a", "b"]),
        "f2": st.sampled_from(KEYS),
        "f3": st.integers(0, 99),
    }
    return data.draw(driving.arrivals(columns, most=14))


def types(kind: pa.DataType) -> dict[str, pa.DataType]:
    return {"f0": kind, "f1": pa.string(), "f2": pa.string(), "f3": pa.int64()}


@settings(max_examples=150)
@given(st.data())
def test_within_a_band(data: st.DataObject) -> None:
    left = data.draw(st.sampled_from(list(KINDS)))
    mixed = left in NUMBERS and data.draw(st.integers(0, 3)) == 0
    right = data.draw(st.sampled_from(NUMBERS)) if mixed else left
    kinds = [left, right]
    rows = [draw_rows(data, kind) for kind in kinds]
    last = driving.end_of(*rows)
    ended = data.draw(st.sampled_from([None, last - 1]))
    cuts = data.draw(driving.cuts(last))
    before = data.draw(st.integers(-5, 5))
    lengths: list[Any] = [before, data.draw(st.integers(-before, max(5, -before)))]
    if left == pa.float64():
        lengths = [length / 2 for length in lengths]
    keyed = data.draw(st.booleans())
    slack, by, marks = data.draw(driving.orders(kinds, last - 1, ended))
    timeout = data.draw(timeouts(last))
    numbered = [left in WHOLE and data.draw(st.integers(0, 3)) == 0 for _ in (0, 1)]
    box = JoinKernel(
        on=(NUMBER if numbered[0] else "f0", NUMBER if numbered[1] else "f0"),
        by=tuple(("f1",) if b else () for b in by),  # type: ignore[arg-type]
        slack=(slack[0], slack[1]),
        before=lengths[0],
        after=lengths[1],
        rows=None,
        keys=(("f2",), ("f2",)) if keyed else ((), ()),
        fields=(("f3", "f0"), ("f3",)),
        types=(tuple(types(left).items()), tuple(types(right).items())),
        late=(True, True),
        by_mark=tuple(("f1",) if isinstance(m, GroupedLowWater) else () for m in marks),  # type: ignore[arg-type]
        timeout_us=timeout.us,
    )
    tables = [as_table(each, types(kind)) for each, kind in zip(rows, kinds, strict=True)]
    parquet, clock = data.draw(st.booleans()), timeout.clock
    ran = drive(box, tables, marks, cuts, ended=ended, parquet=parquet, clock=clock)
    sides = [Side(*each) for each in zip(kinds, slack, by, marks, numbered, strict=True)]
    scale = 10 ** (left.scale if pa.types.is_decimal(left) else 0)
    r0, r1 = (r if isinstance(r, float) else Fraction(r, scale) for r in lengths)
    out, why, held = band_model(sides, rows, r0, r1, keyed, last, ended, timeout)
    out.sort(key=lambda row: (row["_seq"], row["_sub"]))
    assert plain(ran.ports[""]) == plain(out)
    for side, name in zip(sides, ("left_late", "right_late"), strict=True):
        assert plain(ran.ports[name]) == plain(side.late)
    assert ran.late == why
    assert ran.held == [held[cut - 1] for cut in cuts]


def rows_model(
    rows: list[Rows], latest: tuple[int, int], keyed: bool, last: int, timeout: Timeout
) -> tuple[Rows, int, list[int]]:
    """Pairs in any order, how many timed out, how many are held after each moment."""
    out, gone, held = [], 0, []
    kept: list[Rows] = [[], []]
    for moment in range(last):
        for side in (0, 1):
            for row in (row for row in rows[side] if row["_seq"] == moment):
                for other in kept[1 - side]:
                    left, right = (row, other) if side == 0 else (other, row)
                    if alike(left, right, keyed) and timeout.meet(left, right):
                        out.append(pair(left, right, side == 0))
                kept[side] = [*kept[side], row][-latest[side] :]
        for side in (0, 1):
            stays = [row for row in kept[side] if not timeout.is_over(row, moment)]
            gone += len(kept[side]) - len(stays)
            kept[side] = stays
        held.append(len(kept[0]) + len(kept[1]))
    return out, gone, held


@given(st.data())
def test_by_rows(data: st.DataObject) -> None:
    kind = pa.int64()
    rows = [draw_rows(data, kind) for _ in (0, 1)]
    last = driving.end_of(*rows)
    cuts = data.draw(driving.cuts(last))
    latest = (data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4)))
    keyed = data.draw(st.booleans())
    timeout = data.draw(timeouts(last))
    box = JoinKernel(
        on=(None, None),
        by=((), ()),
        slack=(None, None),
        before=None,
        after=None,
        rows=latest,
        keys=(("f2",), ("f2",)) if keyed else ((), ()),
        fields=(("f3", "f0"), ("f3",)),
        types=(tuple(types(kind).items()),) * 2,
        timeout_us=timeout.us,
    )
    tables = [as_table(each, types(kind)) for each in rows]
    parquet, clock = data.draw(st.booleans()), timeout.clock
    ran = drive(box, tables, [EMPTY, EMPTY], cuts, parquet=parquet, clock=clock)
    out, gone, held = rows_model(rows, latest, keyed, last, timeout)
    out.sort(key=lambda row: (row["_seq"], row["_sub"]))
    assert ran.ports[""] == out
    assert ran.late == ({"timeout": gone} if gone else {})
    assert ran.held == [held[cut - 1] for cut in cuts]


@given(st.data())
def test_with_a_table(data: st.DataObject) -> None:
    kind = pa.int64()
    rows, static = draw_rows(data, kind), draw_rows(data, kind)
    at = data.draw(st.sampled_from([0, 1]))
    keyed = data.draw(st.booleans())
    last = driving.end_of(rows)
    cuts = data.draw(driving.cuts(last))
    columns = tuple(types(kind).items())
    box = JoinKernel(
        on=(None, None), by=((), ()), slack=(None, None), before=None, after=None, rows=None,
        keys=(("f2",), ("f2",)) if keyed else ((), ()), fields=(("f3",), ("f3", "f0")),
        types=(columns, columns), table=at,
    )  # fmt: skip
    table = as_table(static, types(kind)).drop_columns(["_seq", "_ts"])
    stream = as_table(rows, types(kind))
    inputs = [table, stream] if at == 0 else [stream, table]
    ran = drive(box, inputs, [EMPTY, EMPTY], cuts, static=at)
    out = []
    for row in rows:
        for place, other in enumerate(static):
            left, right = (other, row) if at == 0 else (row, other)
            if alike(left, right, keyed):
                sub = row["_sub"] + place.to_bytes(8, "big")
                fields = {"l_f3": left["f3"], "r_f3": right["f3"], "r_f0": right["f0"]}
                out.append({"_seq": row["_seq"], "_ts": row["_ts"], "_sub": sub} | fields)
    assert ran.ports[""] == out


def plain_join(kind: pa.DataType, before: Any, after: Any, **more: Any) -> JoinKernel:
    """A join without keys of inputs with one field."""
    columns = (("f0", kind),)
    given: dict[str, Any] = {"slack": (None, None), "keys": ((), ())} | more
    return JoinKernel(
        on=("f0", "f0"), by=((), ()), before=before, after=after, rows=None,
        fields=(("f0",), ("f0",)), types=(columns, columns), **given,
    )  # fmt: skip


BORDER = 2**63 - 1


def test_borders_of_integers() -> None:
    values = [-BORDER - 1, -BORDER, -1, 0, BORDER - 1, BORDER]
    left = pa.table({"_seq": range(6), "_ts": [0] * 6, "f0": pa.array(values)})
    right = pa.table({"_seq": range(6, 12), "_ts": [0] * 6, "f0": pa.array(values)})
    ran = drive(plain_join(pa.int64(), 1, BORDER), [left, right], [EMPTY, EMPTY], [3, 8, 20])
    got = {(row["l_f0"], row["r_f0"]) for row in ran.ports[""]}
    assert got == {(a, b) for a in values for b in values if a - 1 <= b <= a + BORDER}


@pytest.mark.parametrize("cuts", [[9], [1, 3, 9]])
def test_rounding_does_not_part_pairs(cuts: list[int]) -> None:
    """0.9 − 0.2 <= 0.7 holds although 0.7 + 0.2 < 0.9: a mark at 0.9 must not purge 0.7."""
    left = pa.table({"_seq": [5], "_ts": [0], "f0": [0.9]})
    right = pa.table({"_seq": [1], "_ts": [0], "f0": [0.7]})
    marks = [LowWater.of([(2, 0.9)]), EMPTY]
    ran = drive(plain_join(pa.float64(), 0.2, 0.2), [left, right], marks, cuts)
    assert len(ran.ports[""]) == 1


def test_keys_that_are_not_numbers() -> None:
    keys = [NAN, 0.0, None, INF]
    columns = (("f0", pa.int64()), ("f1", pa.float64()))
    box = JoinKernel(
        on=("f0", "f0"), by=((), ()), slack=(None, None), before=9, after=9, rows=None,
        keys=(("f1",), ("f1",)), fields=(("f1",), ("f1",)), types=(columns, columns),
    )  # fmt: skip
    sides = [
        pa.table({"_seq": range(4 * n, 4 * n + 4), "_ts": [0] * 4, "f0": range(4), "f1": each})
        for n, each in enumerate([keys, [-NAN, -0.0, None, INF]])
    ]
    ran = drive(box, sides, [EMPTY, EMPTY], [9])
    assert [str(row["l_f1"]) for row in ran.ports[""]] == ["nan", "0.0", "inf"]
    assert ran.held == [6]  # NULL has no partners


def test_a_joint_mark_counts_alone() -> None:
    rows = pa.table({"_seq": [1], "_ts": [0], "f0": [5]})
    joint = JointLowWater("g", LowWater.of([(2, 4)]), LowWater.of([(0, 9)]), LowWater.of([(0, 9)]))
    nothing = rows.slice(0, 0)
    ran = drive(plain_join(pa.int64(), 0, 0), [rows, nothing], [joint, joint], [4, 9])
    assert (ran.late, ran.held) == ({}, [1, 1])


def test_a_tuple_nobody_can_join_is_not_stored() -> None:
    """[3 §5.3]: what the other input has passed is joined on the fly."""
    left = pa.table({"_seq": [1, 3], "_ts": [0, 0], "f0": [10, 3]})
    right = pa.table({"_seq": [2], "_ts": [0], "f0": [4]})
    marks = [EMPTY, LowWater.of([(2, 6)])]
    ran = drive(plain_join(pa.int64(), 1, 1), [left, right], marks, [2, 3, 4])
    assert [(row["l_f0"], row["r_f0"]) for row in ran.ports[""]] == [(3, 4)]
    assert ran.stored[-1] == {"left": 1, "right": 1}


def test_state_does_not_pile_up() -> None:
    n = 300
    side = pa.table({"_seq": range(n), "_ts": range(n), "f0": range(n)})
    mark = LowWater.of([(m, m) for m in range(n)])
    ran = drive(plain_join(pa.int64(), 2, 2), [side, side], [mark, mark], list(range(1, n + 1)))
    assert max(s["left"] + s["right"] for s in ran.stored) <= 20
    assert set(ran.held[5:]) == {6}


POSITIONS_X = {120: (3, 1, 1), 125: (4, 2, 1), 130: (4, 3, 1), 135: (2, 4, 1)}
PLATOON_X = [
    (sid, minute, pos)
    for minute, positions in POSITIONS_X.items()
    for sid, pos in enumerate(positions, 1)
]
PLATOON_Y = [
    (10, 115, 3), (11, 115, 4), (12, 115, 5), (13, 115, 6), (10, 125, 3), (11, 125, 4),
    (10, 135, 4), (11, 135, 4), (10, 145, 4), (13, 145, 1),
]  # fmt: skip
"""What the figure prints of Y, and what follows from the pairs it prints."""


@pytest.mark.parametrize("interleaving", [0, 1, 2])
def test_figure_10(interleaving: int) -> None:
    """Soldiers of two platoons at one position within ten minutes (its pair 12 is a misprint)."""
    columns = (("f0", pa.int64()), ("f1", pa.int64()), ("f2", pa.int64()))
    box = JoinKernel(
        on=("f1", "f1"), by=((), ()), slack=(0, 0), before=10, after=10, rows=None,
        keys=(("f2",), ("f2",)), fields=(("f0", "f1", "f2"),) * 2, types=(columns, columns),
    )  # fmt: skip
    starts = [(0, 50), (50, 0), (0, 0)][interleaving]
    tables = []
    for start, rows in zip(starts, (PLATOON_X, PLATOON_Y), strict=True):
        table = pa.table({f"f{i}": [row[i] for row in rows] for i in range(3)})
        seq = pa.array(range(start, start + len(rows)))
        tables.append(table.append_column("_seq", seq).append_column("_ts", seq))
    ran = drive(box, tables, [EMPTY, EMPTY], [7, 55, 90])
    got = [tuple(row[f"{side}_f{i}"] for side in "lr" for i in range(3)) for row in ran.ports[""]]
    assert sorted(got) == [
        (1, 120, 3, 10, 115, 3),
        (1, 120, 3, 10, 125, 3),
        (1, 125, 4, 10, 135, 4),
        (1, 125, 4, 11, 115, 4),
        (1, 125, 4, 11, 125, 4),
        (1, 125, 4, 11, 135, 4),
        (1, 130, 4, 10, 135, 4),
        (1, 130, 4, 11, 125, 4),
        (1, 130, 4, 11, 135, 4),
        (2, 130, 3, 10, 125, 3),
        (2, 135, 4, 10, 135, 4),
        (2, 135, 4, 10, 145, 4),
        (2, 135, 4, 11, 125, 4),
        (2, 135, 4, 11, 135, 4),
        (3, 135, 1, 13, 145, 1),
    ]
