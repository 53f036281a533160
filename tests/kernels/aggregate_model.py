"""What an aggregate means, one tuple at a time; and a way to run the kernel on the same events."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa

from auroral.kernels.accumulators.choice import CallSpec
from auroral.kernels.aggregate import AggregateKernel
from auroral.kernels.kernel import Context
from auroral.progress.lowwater import END, GroupedLowWater, JointLowWater, LowWater

from .driving import _between, _through_parquet, as_table, marked, reason

CALLS = (
    CallSpec("count", (), pa.int64()),
    CallSpec("collect_list", (pa.int64(),), pa.list_(pa.int64())),
)


@dataclass
class Open:
    """A window and its tuples."""

    start: Any
    end: Any
    rows: list[dict[str, Any]] = field(default_factory=list)
    closed: bool = False


@dataclass
class Model:
    """Events go in moment by moment; `emitted` and `late` are what comes out."""

    kernel: AggregateKernel
    kind: pa.DataType
    marks: LowWater | GroupedLowWater | JointLowWater | None
    clock: LowWater | None
    emitted: list[tuple[Any, ...]] = field(default_factory=list)
    late: list[tuple[int, int]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    seen: dict[Any, list[Any]] = field(default_factory=dict)
    windows: dict[Any, Open] = field(default_factory=dict)
    origin: dict[Any, Any] = field(default_factory=dict)
    waiting: dict[Any, list[dict[str, Any]]] = field(default_factory=dict)
    ended: bool = False

    def run(self, rows: Sequence[dict[str, Any]], last: int, ended: int | None) -> Model:
        for moment in range(last):
            self.now = moment
            for row in rows:
                if row["_seq"] == moment:
                    self.arrive(row)
            self.now = moment
            self.ended = moment == ended
            self.settle()
        return self

    def arrive(self, row: dict[str, Any]) -> None:
        why = reason(row["f0"]) if self.kernel.on else None
        if why:
            self.leave(row, why)
            return
        reached = None if self.clock is None else self.clock.at(self.now)
        row = dict(row, group=canonical(row["f1"]), reached=reached or 0)
        seen = self.seen.setdefault(row["group"], [])
        on = marked(row["f0"], self.kind) if self.kernel.on else len(seen) + 1
        row["on"] = 0.0 if on == 0 and isinstance(on, float) else on
        row["mark"] = self.before(row["group"])
        seen.append(row["on"])
        if self.kernel.opens:
            self.hold(row)
        elif self.kernel.align_first and row["group"] not in self.origin:
            self.align(row)
        else:
            self.give(row)
            self.close_passed(inferred=True)

    def before(self, group: Any) -> Any:
        """Progress when a tuple arrives."""
        if self.kernel.on is None:
            return len(self.seen[group]) + 1
        if self.kernel.slack is None:
            return self.promised(group, self.now - 1)
        return self.threshold(group)

    def now_at(self, group: Any) -> Any:
        """Progress now."""
        if self.ended:
            return END
        if self.kernel.on is None:
            return len(self.seen.get(group, [])) + 1
        if self.kernel.slack is None:
            return self.promised(group, self.now)
        return self.threshold(group)

    def threshold(self, group: Any) -> Any:
        assert self.kernel.slack is not None
        seen = sorted(self.seen.get(group, []), reverse=True)
        return seen[self.kernel.slack] if len(seen) > self.kernel.slack else None

    def promised(self, group: Any, moment: int) -> Any:
        if self.marks is None:
            return None
        if isinstance(self.marks, GroupedLowWater):
            return self.marks.at(moment, (group[1],))
        if isinstance(self.marks, JointLowWater):
            return self.marks.of(group[1]).at(moment)
        return self.marks.at(moment)

    def align(self, row: dict[str, Any]) -> None:
        waiting = self.waiting.setdefault(row["group"], [])
        waiting.append(row)
        if len(waiting) > (self.kernel.slack or 0):
            self.let_in(row["group"])

    def let_in(self, group: Any) -> None:
        waiting = self.waiting.pop(group)
        self.origin[group] = min(row["on"] for row in waiting)
        for row in waiting:
            self.give(row)

    def holding(self, row: dict[str, Any]) -> list[tuple[Any, Any]]:
        """Start and end of each window that a tuple is in.

        A window ends where the window a whole number of advances further starts, if its size is
        that many advances; with doubles that is not the same as start + size.
        """
        on, size, advance = row["on"], self.kernel.size, self.kernel.advance
        base: Any = 1 if self.kernel.on is None else self.origin.get(row["group"])
        lowest = -math.inf if base is None else 0
        base = 0 if base is None else base
        first = math.floor(
            (on - size - base) / advance if isinstance(on, float) else (on - size - base) // advance
        )
        last = math.floor(
            (on - base) / advance if isinstance(on, float) else (on - base) // advance
        )
        advances = Fraction(str(size)) / Fraction(str(advance))
        whole = int(advances) if advances.denominator == 1 else None
        found = []
        for k in range(first - 1, last + 3):
            start = base + k * advance
            end = start + size if whole is None else base + (k + whole) * advance
            if k >= lowest and start <= on < end:
                found.append((start, end))
        return found

    def give(self, row: dict[str, Any]) -> None:
        mark, history = row["mark"], self.kernel.history
        tardy = self.kernel.slack is not None and mark is not None and row["on"] < mark
        mine, used = self.holding(row), False
        for start, end in mine:
            window = self.windows.get((row["group"], start), Open(start, end))
            over = mark is not None and mark >= window.end
            if not over and not window.closed:
                if not tardy:
                    used = True
                    window.rows.append(row)
                    self.windows[row["group"], start] = window
            elif history is not None and (mark is None or mark < window.end + history):
                used = window.closed = True
                window.rows.append(row)
                self.windows[row["group"], start] = window
                self.emit(row["group"], window, True)
        if not used:
            if mine or tardy:
                self.leave(row, "late")
            else:
                self.count("outside")

    def settle(self) -> None:
        if self.ended:
            for group in list(self.waiting):
                if self.kernel.align_first:
                    self.let_in(group)
        if self.kernel.opens:
            self.release_passed()
        else:
            self.close_passed()
        clock = self.clock.at(self.now) if self.clock is not None else None
        for (group, _), window in self.windows.items():
            if window.closed or self.kernel.timeout_us is None or clock is None:
                continue
            if clock > window.rows[0]["reached"] + self.kernel.timeout_us:
                self.emit(group, window)

    def close_passed(self, inferred: bool = False) -> None:
        if inferred and self.kernel.slack is None and self.kernel.on is not None:
            return
        for (group, _), window in self.windows.items():
            mark = self.now_at(group)
            if not window.closed and mark is not None and mark >= window.end:
                self.emit(group, window)

    def hold(self, row: dict[str, Any]) -> None:
        group = row["group"]
        if row["mark"] is not None and row["on"] < row["mark"]:
            self.leave(row, "late")
            return
        waiting = self.waiting.setdefault(group, [])
        waiting.append(row)
        if self.kernel.on is None or (
            self.kernel.slack is not None and len(waiting) > self.kernel.slack
        ):
            self.release(group)

    def release_passed(self) -> None:
        for group, waiting in self.waiting.items():
            mark = self.now_at(group)
            passed = self.ended or (self.kernel.slack is None and mark is not None)
            while waiting and passed and mark > min(row["on"] for row in waiting):
                self.release(group)
        for (group, _), window in self.windows.items():
            mark = self.now_at(group)
            inferred = self.kernel.slack is not None and not self.ended
            if not window.closed and not inferred and mark is not None and mark >= window.end:
                self.emit(group, window)

    def release(self, group: Any) -> None:
        waiting = self.waiting[group]
        row = min(waiting, key=lambda row: row["on"])
        waiting.remove(row)
        window = self.windows.get((group, None))
        if window is not None and (row["f3"] or row["on"] >= window.end):
            if not window.closed:
                self.emit(group, window)
            del self.windows[group, None]
            window = None
        if row["f3"]:
            size = math.inf if self.kernel.size is None else self.kernel.size
            window = self.windows[group, None] = Open(row["on"], row["on"] + size)
        if window is None:
            self.count("outside")
        elif window.closed:
            self.leave(row, "late")
        else:
            window.rows.append(row)

    def emit(self, group: Any, window: Open, revises: bool = False) -> None:
        window.closed = True
        ids = [row["f2"] for row in window.rows]
        entered = min(row["_ts"] for row in window.rows)
        self.emitted.append((self.now, window.start, group, entered, ids, revises))

    def leave(self, row: dict[str, Any], why: str) -> None:
        self.late.append((self.now, row["f2"]))
        self.count(why)

    def count(self, why: str) -> None:
        self.counts[why] = self.counts.get(why, 0) + 1


def canonical(value: Any) -> tuple[int, Any]:
    """A group, so that it sorts and compares as groups do: NULL first, NaN last, one zero."""
    if value is None:
        return (0, None)
    if value != value:
        return (2, "nan")
    return (1, 0.0 if value == 0 and isinstance(value, float) else value)


@dataclass
class Ran:
    """What the kernel made in all steps."""

    emitted: list[tuple[Any, ...]]
    late: list[tuple[int, int]]
    counts: dict[str, int]
    state: dict[str, pa.Table]
    pending: list[int | None]


def run(
    kernel: AggregateKernel,
    kind: pa.DataType,
    rows: Sequence[dict[str, Any]],
    marks: Any,
    clock: LowWater | None,
    cuts: Sequence[int],
    ended: int | None,
    parquet: bool = False,
) -> Ran:
    """Run the kernel in steps that end before each of `cuts`."""
    kernel = pickle.loads(pickle.dumps(kernel))
    table = as_table(rows, dict(kernel.types))
    state = {name: schema.empty_table() for name, schema in kernel.tables().items()}
    emitted: list[dict[str, Any]] = []
    late: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    pending: list[int | None] = []
    first = 0
    for last in cuts:
        seen = () if marks is None else (marks.since(max(first - 1, 0)),)
        ticks = None if clock is None else clock.since(max(first - 1, 0))
        made = kernel.step(
            [_between(table, first, last)], state, Context(first, last, seen, ticks, ended)
        )
        for port in made.ports.values():
            port.validate(full=True)
        emitted += made.ports[""].to_pylist()
        late += made.ports["late"].to_pylist() if kernel.fields else []
        for why, count in made.late.items():
            counts[why] = counts.get(why, 0) + count
        for name, changed in made.state.items():
            assert isinstance(changed, pa.Table)
            assert changed.schema.equals(kernel.tables()[name])
            state[name] = _through_parquet(changed) if parquet else changed
        pending.append(made.pending)
        assert made.pending is None or made.pending < last
        first = last
    emitted.sort(key=lambda row: (row["_seq"], row["_sub"]))
    late.sort(key=lambda row: (row["_seq"], row["_sub"]))
    assert len({(row["_seq"], row["_sub"]) for row in emitted}) == len(emitted)
    return Ran(
        [
            (
                row["_seq"],
                marked(row["start"], kind) if kernel.on else row["start"],
                canonical(row["f1"]),
                row["_ts"],
                row["agg1"],
                row.get("revises", False),
            )
            for row in emitted
            if row["agg0"] == len(row["agg1"])
        ],
        [(row["_seq"], row["f2"]) for row in late],
        counts,
        state,
        pending,
    )
