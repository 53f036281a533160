"""Map with state: as a one-at-a-time model does it, however the tuples are cut into steps."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral.kernels.kernel import Context
from auroral.kernels.shelter import sheltering
from auroral.kernels.stateful_map import StatefulMapKernel

from . import driving
from .driving import NAN, as_table, drive, plain

TYPES = {"f0": pa.string(), "f1": pa.float64(), "f2": pa.int64()}
RETURNS = (("n", pa.int64()), ("seen", pa.list_(pa.int64())), ("text", pa.string()))


class Runs:
    """Collects numbers; a 9 gives them away; it fails in every way it can, having changed things.

    The state is a list that it changes in place and returns in rows, too.
    """

    def __init__(self) -> None:
        self.own = 0

    def init(self) -> list[int]:
        return []

    def step(self, state: list[int], row: dict[str, Any]) -> Any:
        self.own += 1
        number = row["b"]
        state.append(number)
        if number == 3:
            raise ValueError("three")
        if number == 4:
            raise SystemExit("four")
        if number == 5:
            return state  # no pair of a state and a row, even if it has two numbers
        if number == 6:
            return state, {"m": 1}
        if number == 7:
            return state, {"n": "many"}
        if number == 8:
            os._exit(3)
        row["b"] = None
        if number == 9:
            return [], {"n": len(state) * self.own, "seen": state}
        return state, None if number is None else {"n": number, "seen": state, "text": row["a"]}


class Model:
    """One tuple at a time, on a copy of everything."""

    def __init__(self) -> None:
        self.states: dict[Any, list[int]] = {}
        self.made: list[dict[str, Any]] = []
        self.failed: list[int] = []

    def push(self, row: Mapping[str, Any], group: Any) -> None:
        before = self.states.get(group, [])
        number = row["f2"]
        after = [*before, number]
        if number in (3, 4, 5, 6, 7, 8):
            self.failed.append(row["_seq"])
            return
        self.states[group] = [] if number == 9 else after
        if number is not None:
            text = None if number == 9 else row["f0"]
            n = len(after) if number == 9 else number
            hidden = {name: row[name] for name in ("_seq", "_ts", "_sub")}
            self.made.append(hidden | {"f1": row["f1"], "m_n": n, "m_seen": after, "m_text": text})


def kernel(by: tuple[str, ...]) -> StatefulMapKernel:
    return StatefulMapKernel(
        Runs, by, tuple(TYPES), ("a", "g", "b"), ("f1",), RETURNS, tuple(TYPES.items())
    )


def modelled(rows: list[dict[str, Any]], by: tuple[str, ...]) -> Model:
    model = Model()
    for row in rows:
        group = tuple("nan" if row[name] != row[name] else row[name] for name in by)
        model.push(row, group)
    return model


@given(st.data())
def test_as_one_at_a_time(data: st.DataObject) -> None:
    columns = {
        "f0": st.sampled_from([None, "x", "é"]),
        "f1": st.sampled_from([None, 0.0, -0.0, NAN, 1.5]),
        "f2": st.sampled_from([None, 0, 1, 2, 3, 4, 5, 6, 7, 9, 9]),
    }
    by = data.draw(st.sampled_from([(), ("f1",), ("f0", "f1")]))
    rows = data.draw(driving.arrivals(columns, most=40))
    last = driving.end_of(rows)
    cuts = data.draw(driving.cuts(last))
    parquet = data.draw(st.booleans())
    ran = drive(kernel(by), [as_table(rows, TYPES)], [], cuts, parquet=parquet)
    model = modelled(rows, by)
    assert plain(ran.ports.get("", [])) == plain(model.made)
    assert ran.held[-1] == len(model.states)
    assert len(ran.dead) == len(model.failed)


@pytest.mark.parametrize("cuts", [[40], [5, 11, 40]])
def test_a_call_that_ends_its_process_fails_alone(cuts: list[int]) -> None:
    numbers = [1, 2, 8, 1, 3, 8, 2, 9, 8, 8, 1, 9]
    rows = [
        {"_seq": at, "_ts": 0, "_sub": b"", "f0": None, "f1": float(at % 2), "f2": number}
        for at, number in enumerate(numbers, 1)
    ]
    for by in ((), ("f1",)):
        with sheltering(True):
            ran = drive(kernel(by), [as_table(rows, TYPES)], [], cuts)
        model = modelled(rows, by)
        assert ran.ports[""] == model.made
        reasons = [why for why, _ in ran.dead]
        assert reasons.count("the function ended its process (exit code 3)") == 4
        assert reasons.count("ValueError: three") == 1


def test_what_failed_is_told_with_its_tuple() -> None:
    rows = [
        {"_seq": at, "_ts": 0, "_sub": b"", "f0": "x", "f1": None, "f2": number}
        for at, number in enumerate([3, 4, 5, 6, 7], 1)
    ]
    dead = drive(kernel(()), [as_table(rows, TYPES)], [], [9]).dead
    assert dead[0] == ("ValueError: three", '{"a": "x", "g": null, "b": 3}')
    assert [why.partition(" (")[0] for why, _ in dead[1:]] == [
        "SystemExit: four",
        "ValueError: not enough values to unpack",
        "ValueError: the row has a field 'm', but returns names n, seen, text",
        "ArrowInvalid: Failed to parse string: 'many' as a scalar of type int64",
    ]


def test_many_failures_cost_no_more_than_their_calls() -> None:
    """What is called again after a failure is not called again after the next."""

    class Counting:
        calls = 0

        def init(self) -> int:
            return 0

        def step(self, state: int, row: dict[str, Any]) -> Any:
            Counting.calls += 1
            if row["b"] % 10 == 9:
                raise ValueError
            return state + 1, None

    n = 2_000
    table = pa.table({"_seq": range(n), "_ts": range(n), "f2": pa.array(range(n), pa.int64())})
    box = StatefulMapKernel(Counting, (), ("f2",), ("b",), (), (), (("f2", pa.int64()),))
    state = {"states": box.tables()["states"].empty_table()}
    made = box.step([table], state, Context(0, n))
    assert len(made.dead) == n // 10
    assert Counting.calls <= 2 * n
    (stored,) = made.state.values()
    table = stored if isinstance(stored, pa.Table) else stored.table
    assert pickle.loads(table["state"][0].as_py()) == n - n // 10


class Unstorable:
    def init(self) -> Any:
        return iter(())

    def step(self, _state: Any, _row: Any) -> Any:
        return (n for n in range(3)), None


def test_a_state_that_cannot_be_stored_stops_the_step() -> None:
    rows = [{"_seq": 1, "_ts": 0, "_sub": b"", "f2": 1}]
    box = StatefulMapKernel(Unstorable, (), ("f2",), ("b",), (), (), (("f2", pa.int64()),))
    with pytest.raises(TypeError, match="Unstorable returned a state that cannot be stored"):
        drive(box, [as_table(rows, {"f2": pa.int64()})], [], [9])
