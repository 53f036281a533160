"""WaitFor: as a one-at-a-time model does it, however the events are cut into steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import auroral.kernels.wait_for as module
from auroral.kernels.wait_for import WaitForKernel
from auroral.progress.lowwater import LowWater

from . import driving
from .driving import NAN, Timeout, as_table, drive, plain

Rows = list[dict[str, Any]]
HELD = {"f0": pa.int64(), "f1": pa.float64(), "f2": pa.string()}
SIGNAL = {"f0": pa.float64(), "f1": pa.int64()}
KEYED = (("f1",), ("f0",))
ALONE: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
KEYS = st.sampled_from([None, NAN, -0.0, 0.0, 1.5])


@dataclass(frozen=True)
class Below:
    """`held.f0 < signal.f1`, and NULL where either is."""

    left: tuple[tuple[str, str], ...] = (("f0", "held"),)
    right: tuple[tuple[str, str], ...] = (("f1", "signal"),)

    def compute(self, pairs: pa.Table) -> pa.Array:
        return pc.less(pairs["held"], pairs["signal"]).combine_chunks()


def kernel(*, keyed: bool, below: bool, timeout_us: int, late: bool = True) -> WaitForKernel:
    keys = KEYED if keyed else ALONE
    fields = ("f0", "f2")
    return WaitForKernel(
        keys, fields, tuple(HELD.items()), timeout_us, Below() if below else None, late
    )


def alike(held: Any, signal: Any) -> bool:
    both_nan = held != held and signal != signal
    return held is not None and signal is not None and (held == signal or both_nan)


@dataclass
class Model:
    """Holds tuples in a list and looks at all of them."""

    keyed: bool
    below: bool
    timeout: Timeout

    def run(self, held: Rows, signals: Rows, last: int, ended: int | None) -> None:
        self.out: Rows = []
        self.late: Rows = []
        self.counts: dict[str, int] = {}
        self.held: list[int] = []
        waiting: Rows = []
        for moment in range(last):
            waiting += [row for row in held if row["_seq"] == moment]
            now = [row for row in signals if row["_seq"] == moment]
            gone = [row for row in waiting if any(self._releases(s, row) for s in now)]
            self.out += [_left(row, moment) for row in gone]
            waiting = [row for row in waiting if row not in gone]
            for row in list(waiting):
                over = self.timeout.is_over(row, moment)
                if over or moment == ended:
                    waiting.remove(row)
                    self.late.append(_left(row, moment))
                    reason = "timeout" if over else "ended"
                    self.counts[reason] = self.counts.get(reason, 0) + 1
            self.held.append(len(waiting))

    def _releases(self, signal: dict[str, Any], row: dict[str, Any]) -> bool:
        if not self.timeout.meet(signal, row):
            return False
        if self.keyed and not alike(row["f1"], signal["f0"]):
            return False
        known = row["f0"] is not None and signal["f1"] is not None
        return not self.below or (known and row["f0"] < signal["f1"])


def _left(row: dict[str, Any], moment: int) -> dict[str, Any]:
    sub = row["_seq"].to_bytes(8, "big") + row["_sub"]
    return {"_seq": moment, "_ts": row["_ts"], "_sub": sub, "f0": row["f0"], "f2": row["f2"]}


@given(st.data())
def test_as_one_at_a_time(data: st.DataObject) -> None:
    number = st.sampled_from([None, 0, 1, 2, 3])
    columns = {"f0": number, "f1": KEYS, "f2": st.sampled_from([None, "é"])}
    held = data.draw(driving.arrivals(columns))
    signals = data.draw(driving.arrivals({"f0": KEYS, "f1": number}, most=12))
    last = driving.end_of(held, signals)
    ended = data.draw(st.sampled_from([None, last - 1]))
    timeout = Timeout(data.draw(driving.clocks(last)), data.draw(st.sampled_from([1, 3, 6])))
    keyed, below = data.draw(st.booleans()), data.draw(st.booleans())
    model = Model(keyed, below, timeout)
    model.run(held, signals, last, ended)
    cuts = data.draw(driving.cuts(last))
    assert timeout.us is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PAIRS", data.draw(st.sampled_from([1, 4, 1_000])))
        ran = drive(
            kernel(keyed=keyed, below=below, timeout_us=timeout.us),
            [as_table(held, HELD), as_table(signals, SIGNAL)],
            [LowWater(), LowWater()],
            cuts,
            ended=ended,
            parquet=data.draw(st.booleans()),
            clock=timeout.clock,
        )
    order = lambda row: (row["_seq"], row["_sub"])  # noqa: E731
    assert plain(ran.ports[""]) == plain(sorted(model.out, key=order))
    assert plain(ran.ports["late"]) == plain(sorted(model.late, key=order))
    assert ran.late == model.counts
    assert ran.held == [model.held[cut - 1] for cut in cuts]


def rows(*arrived: tuple[int, int | None, float | None]) -> Rows:
    """Tuples by moment, number and key."""
    return [
        {"_seq": seq, "_ts": seq, "_sub": b"", "f0": number, "f1": key, "f2": None}
        for seq, number, key in arrived
    ]


def signals_of(*arrived: tuple[int, float]) -> Rows:
    return [{"_seq": seq, "_ts": seq, "_sub": b"", "f0": key, "f1": 9} for seq, key in arrived]


def test_what_a_signal_released_stays_released_however_little_is_rewritten() -> None:
    held = rows(*((at, at, float(at)) for at in range(1, 13)))
    # Each signal releases one of many tuples, and comes again for it.
    signals = signals_of(*((20 + at, float(1 + at // 2)) for at in range(8)))
    made = kernel(keyed=True, below=False, timeout_us=100)
    inputs = [as_table(held, HELD), as_table(signals, SIGNAL)]
    ran = drive(made, inputs, [LowWater(), LowWater()], [14, *range(21, 30)])
    assert [row["f0"] for row in ran.ports[""]] == [1, 2, 3, 4]
    assert [row["_seq"] for row in ran.ports[""]] == [20, 22, 24, 26]
    assert ran.held[-1] == 8
    assert ran.stored[-1] == {"held": 12, "released": 4}


def test_released_tuples_are_forgotten_once_most_are_gone() -> None:
    held = rows(*((at, at, float(at)) for at in range(1, 9)))
    signals = signals_of(*((20 + at, float(at)) for at in range(1, 9)))
    made = kernel(keyed=True, below=False, timeout_us=100)
    inputs = [as_table(held, HELD), as_table(signals, SIGNAL)]
    ran = drive(made, inputs, [LowWater(), LowWater()], [10, *range(22, 30)])
    assert [row["f0"] for row in ran.ports[""]] == list(range(1, 9))
    assert ran.stored[-1] == {"held": 0, "released": 0}
    assert max(stored["released"] for stored in ran.stored) == 4


def test_nothing_is_made_for_an_arc_that_nobody_reads() -> None:
    made = kernel(keyed=True, below=False, timeout_us=5, late=False)
    inputs = [as_table(rows((1, 1, 1.5)), HELD), as_table([], SIGNAL)]
    ran = drive(made, inputs, [LowWater(), LowWater()], [9], ended=8)
    assert set(ran.ports) == {""}
    assert ran.late == {"ended": 1}
