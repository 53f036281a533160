"""The two sides of a band join: what may still have partners, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.kernels.arrivals import Arrivals, late_port
from auroral.kernels.grouping import Ids, match_groups
from auroral.kernels.join_pairs import Units
from auroral.kernels.kernel import Emitted
from auroral.kernels.steps import passed
from auroral.kernels.stored import renewed, tuples
from auroral.kernels.units import Mask, numbers, roomy
from auroral.progress.lowwater import END, Values

SIDES = ("left", "right")


@dataclass(frozen=True)
class Band:
    """The band in common units, and what each side's progress was before and after the step."""

    units: Units
    before: Any
    after: Any
    progress: tuple[tuple[Any, Any], tuple[Any, Any]]

    @staticmethod
    def of(
        types: Sequence[pa.DataType], lengths: Sequence[Any], progress: Sequence[Sequence[Any]]
    ) -> Band:
        units = Units.of(types[0], types[1])
        left, right = ([units.one(side, v) for v in progress[side]] for side in (0, 1))
        before, after = (units.one(0, length) for length in lengths)
        return Band(units, before, after, ((left[0], left[1]), (right[0], right[1])))

    def bounds(self, on: Values) -> tuple[Values, Values]:
        """The least and the greatest right values that left ones match."""
        (roomy_on,) = roomy([on], [self.before, self.after])
        return roomy_on - self.before, roomy_on + self.after

    def dead(self, side: int, on: Values, high: Values, when: int) -> Mask:
        """Which tuples no partner can come for any more, before (0) or after (1) the step."""
        mark = self.progress[1 - side][when]
        if side == 0:
            return passed(mark, high)
        # As the band has it, for floats round: no left value at or above the mark reaches it.
        return passed(mark if mark is None or mark == END else mark - self.before, on)


@dataclass(frozen=True)
class Side:
    """The tuples of a side that may have partners: the stored ones first, then the new ones."""

    rows: pa.Table
    old: int
    on: Values
    low: Values
    high: Values
    stays: Mask
    """Which of the stored tuples in the state stay."""
    keep: Mask
    """Which of the new tuples among `rows` are to be stored."""

    @staticmethod
    def of(
        side: int,
        on: str,
        keys: Sequence[str],
        new: pa.Table,
        old: pa.Table,
        arrivals: Arrivals,
        band: Band,
    ) -> Side:
        """What is alive of the stored tuples, and of the new ones what is not late."""
        before = band.units.column(side, numbers(old[on])[0])
        alive = ~band.dead(side, before, band.bounds(before)[1], 0)
        counts = arrivals.counts & has_keys(new, keys)
        kept = _filtered(tuples(old, old.schema), alive)
        fresh = _filtered(tuples(new, old.schema), counts)
        after = band.units.column(side, arrivals.values[counts])
        values = np.concatenate([before[alive], after])
        low, high = band.bounds(values)
        keep = ~band.dead(side, values, high, 1)
        stays = alive.copy()
        stays[alive] = keep[: kept.num_rows]
        rows = pa.concat_tables([kept, fresh]).combine_chunks()
        return Side(rows, kept.num_rows, values, low, high, stays, keep[kept.num_rows :])

    def store(self, name: str, old: pa.Table, emitted: Emitted) -> int:
        """Put what is to be stored into the step's state; how many tuples are held then."""
        changed = renewed(old, self.stays, _filtered(self.rows.slice(self.old), self.keep))
        if changed is not None:
            emitted.state[name] = changed
        return int(self.stays.sum() + self.keep.sum())


def note_progress(
    emitted: Emitted, side: int, new: pa.Table, arrivals: Arrivals, fields: Sequence[str] | None
) -> None:
    """Put what was late of a side, and its thresholds, into what a step made."""
    if arrivals.seen is not None:
        emitted.state[f"{SIDES[side]}_seen"] = arrivals.seen
    for why, count in arrivals.late_counts().items():
        emitted.late[why] = emitted.late.get(why, 0) + count
    emitted.ports |= late_port(f"{SIDES[side]}_late", new, arrivals, fields)


def key_numbers(tables: Sequence[pa.Table], keys: Sequence[Sequence[str]]) -> tuple[list[Ids], int]:
    """Numbers of the rows of two tables, equal where their keys are; -1 where one is NULL."""
    columns = [[table[name] for name in names] for table, names in zip(tables, keys, strict=True)]
    rows = [table.num_rows for table in tables]
    left, right, count = match_groups(columns[0], rows[0], columns[1], rows[1])
    for ids, table, names in zip((left, right), tables, keys, strict=True):
        ids[~has_keys(table, names)] = -1
    return [left, right], max(count, 1)


def has_keys(table: pa.Table, names: Sequence[str]) -> Mask:
    """Which rows have no NULL in these columns."""
    has = np.ones(table.num_rows, bool)
    for name in names:
        if table[name].null_count:
            has &= np.asarray(table[name].is_valid(), bool)
    return has


def _filtered(table: pa.Table, kept: Mask) -> pa.Table:
    return table if kept.all() else table.filter(pa.array(kept))
