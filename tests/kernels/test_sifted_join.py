"""Sieves of a join take only pairs that the filter behind it drops, and give their tuples back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.kernels.join import JoinKernel
from auroral.kernels.joining.shelf import MOST_PARTS
from auroral.kernels.kernel import Appended, Context, Emitted, StateTables
from auroral.progress.lowwater import LowWater

COLUMNS = (
    ("f0", pa.int64()),
    ("f1", pa.string()),
    ("f2", pa.int64()),
    ("x0", pa.bool_()),
    ("x1", pa.bool_()),
)
SCHEMA = pa.schema([("_seq", pa.int64()), ("_ts", pa.int64()), *COLUMNS])
Forms = list[tuple[str | None, str | None]]


def kernel(slack: int | None, keyed: bool, numbered: bool) -> JoinKernel:
    on = "_number" if numbered else "f0"
    return JoinKernel(
        on=(on, on),
        by=((), ()),
        slack=(slack, slack),
        before=3,
        after=2,
        rows=None,
        keys=(("f1",), ("f1",)) if keyed else ((), ()),
        fields=(("f0", "f2"), ("f2",)),
        types=(COLUMNS, COLUMNS),
        late=(True, True),
    )


class Stored:
    """Runs a kernel, whose form may change; its tables are kept in parts, as on disk."""

    def __init__(self) -> None:
        self.parts: dict[str, list[pa.Table]] = {}
        self.read: list[str] = []

    def step(self, one: JoinKernel, inputs: list[pa.Table], context: Context) -> Emitted:
        schemas = dict(one.tables())
        schemas |= {n: schemas[n.split("~")[0]] for n in self.parts if n not in schemas}

        def read(name: str, columns: Sequence[str] | None) -> pa.Table:
            self.read.append(name)
            whole = pa.concat_tables([schemas[name].empty_table(), *self.parts.get(name, [])])
            return whole if columns is None else whole.select(columns)

        made = {name: (len(self.parts.get(name, ())), partial(read, name)) for name in schemas}
        emitted = one.step(inputs, StateTables(made), context)
        for name, changed in emitted.state.items():
            if isinstance(changed, Appended):
                self.parts.setdefault(name, []).append(changed.table)
            else:
                self.parts[name] = [changed] if changed.num_rows else []
        self.parts = {name: parts for name, parts in self.parts.items() if parts}
        return emitted


def rows(rng: Random, count: int) -> list[list[dict[str, Any]]]:
    sides: list[list[dict[str, Any]]] = [[], []]
    for number in range(count):
        row: dict[str, Any] = {
            "_seq": number + 1,
            "_ts": number,
            "f0": number // 3 - rng.choice([0, 0, 1, 5]),
        }
        row |= {"f1": rng.choice(["a", "b", None]), "f2": number}
        row |= {name: rng.choice([True, False, None]) for name in ("x0", "x1")}
        rng.choice(sides).append(row)
    return sides


def sieved(one: JoinKernel, form: tuple[str | None, str | None]) -> JoinKernel:
    names = ("left", "right")
    left, right = ((name,) if name else () for name in form)
    shelves = [f"{side}~{name}" if name else None for side, name in zip(names, form, strict=True)]
    return replace(one, sieves=(left, right), shelves=(shelves[0], shelves[1]))


def passes(pair: dict[str, Any], form: tuple[str | None, str | None], by: dict[int, Any]) -> bool:
    numbers = (pair["l_f2"], pair["r_f2"])
    return all(by[n][name] is True for n, name in zip(numbers, form, strict=True) if name)


@given(st.integers(0, 10**9), st.sampled_from([None, 0, 2]), st.booleans(), st.booleans())
def test_a_sieve_takes_only_pairs_that_its_filter_drops(
    seed: int, slack: int | None, keyed: bool, numbered: bool
) -> None:
    rng = Random(seed)
    plain = kernel(None if numbered else slack, keyed, numbered)
    sides = rows(rng, 60)
    by = {row["f2"]: row for side in sides for row in side}
    marks = [LowWater.of([(n, n // 3 - 3) for n in range(4, 60, 4)]).end(61) for _ in sides]
    forms: Forms = [(None, None), ("x0", None), (None, "x0"), ("x0", "x1"), ("x1", "x0")]
    declared, sifted = Stored(), Stored()
    unread: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    form, first = forms[0], 0
    while first < 62:
        last = min(first + rng.randint(1, 6), 62)
        if rng.random() < 0.3:
            form, unread = rng.choice(forms), (rng.choice([(), ("f0",)]), ())
        some = [[row for row in side if first <= row["_seq"] < last] for side in sides]
        tables = [pa.Table.from_pylist(side, SCHEMA) for side in some]
        seen = tuple(mark.since(max(first - 1, 0)) for mark in marks)
        context = Context(first, last, seen, None, 61)
        wanted = declared.step(plain, tables, context)
        running = replace(sieved(plain, form), unread=unread)
        found = sifted.step(running, tables, context)
        assert found.late == wanted.late
        for port in ("left_late", "right_late"):
            assert found.ports[port].equals(wanted.ports[port])
        order = [("_seq", "ascending"), ("_sub", "ascending")]
        pairs = [one.ports[""].sort_by(order).to_pylist() for one in (wanted, found)]
        if unread[0]:
            assert all(pair["l_f0"] is None for pair in pairs[1])
            pairs[0] = [{**pair, "l_f0": None} for pair in pairs[0]]
        assert [pair for pair in pairs[1] if pair not in pairs[0]] == []
        kept = [[pair for pair in some if passes(pair, form, by)] for some in pairs]
        assert kept[0] == kept[1]
        if form == (None, None):
            assert pairs[0] == pairs[1], "what was shelved is as all others again"
        first = last
    assert not [name for name in sifted.parts if "_seen" not in name], "nothing is held at the end"


def test_a_shelf_is_not_read_but_emptied_from_time_to_time() -> None:
    one = sieved(kernel(None, keyed=False, numbered=False), ("x0", None))
    stored = Stored()
    steps = 3 * MOST_PARTS
    marks = [LowWater.of([(n, n) for n in range(1, steps + 1)]) for _ in range(2)]
    for at in range(1, steps + 1):
        row = {"_seq": at, "_ts": 0, "f0": at, "f1": "a", "f2": at, "x0": False, "x1": None}
        tables = [pa.Table.from_pylist(side, SCHEMA) for side in ([row], [])]
        seen = tuple(mark.since(max(at - 1, 0)) for mark in marks)
        emitted = stored.step(one, tables, Context(at, at + 1, seen))
        assert emitted.held == 0
        assert emitted.note["sifted"] == [[0], []]
    assert 1 <= stored.read.count("left~x0") <= 3
    assert sum(part.num_rows for part in stored.parts["left~x0"]) <= MOST_PARTS + 4


@pytest.mark.parametrize("form", [("x0", None), (None, "x0")])
def test_what_was_shelved_is_paired_once_the_sieve_is_gone(
    form: tuple[str | None, str | None],
) -> None:
    plain = kernel(None, keyed=True, numbered=False)
    stored = Stored()
    row = {"_seq": 1, "_ts": 0, "f0": 5, "f1": "a", "f2": 1, "x0": False, "x1": None}
    sides = ([row], []) if form[0] else ([], [row])
    tables = [pa.Table.from_pylist(list(side), SCHEMA) for side in sides]
    nothing = (LowWater(), LowWater())
    assert not stored.step(sieved(plain, form), tables, Context(1, 2, nothing)).ports[""].num_rows
    other = {**row, "_seq": 2, "f2": 2}
    tables = [pa.Table.from_pylist([] if side else [other], SCHEMA) for side in sides]
    assert stored.step(plain, tables, Context(2, 3, nothing)).ports[""].num_rows == 1
    assert not [name for name in stored.parts if "~" in name]
