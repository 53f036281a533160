"""The two sides of a band join: what may still have partners, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from auroral.kernels.arrivals import InputOrder, OrderedArrivals, ended_at, late_port
from auroral.kernels.grouping import Ids, match_groups
from auroral.kernels.joining.pairs import Units
from auroral.kernels.kernel import NEVER, Context, Emitted
from auroral.kernels.steps import Mark, passed
from auroral.kernels.stored import renewed, tuples
from auroral.kernels.units import Mask, numbers, roomy
from auroral.kernels.windowing.timeouts import leaving
from auroral.progress.lowwater import END, Values

SIDES = ("left", "right")
TIMEOUT = "timeout"
"""The reason under which tuples are counted that were held until their time was over."""


@dataclass(frozen=True)
class BandProgress:
    """The band in common units, and what each side's progress was before and after the step."""

    units: Units
    before: Any
    after: Any
    progress: tuple[tuple[Any, Any], tuple[Any, Any]]

    @staticmethod
    def of(
        types: Sequence[pa.DataType], lengths: Sequence[Any], progress: Sequence[Sequence[Any]]
    ) -> BandProgress:
        units = Units.of(types[0], types[1])
        left, right = ([units.one(side, v) for v in progress[side]] for side in (0, 1))
        before, after = (units.one(0, length) for length in lengths)
        return BandProgress(units, before, after, ((left[0], left[1]), (right[0], right[1])))

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

    def passing(self, side: int, on: Values, high: Values, other: OtherSide) -> Ids:
        """The moment at which each tuple is dead, some moment before this step, or `NEVER`."""
        if side == 0:
            return other.passing(lambda values: self.units.column(1, values), high)

        def least_reached(values: Values) -> Values:
            (marks,) = roomy([self.units.column(0, values)], [self.before])
            return np.asarray(marks - self.before)

        return other.passing(least_reached, on)


@dataclass(frozen=True)
class OtherSide:
    """The progress of all that may come on one side, which decides how long the other waits."""

    order: InputOrder
    new: pa.Table
    arrivals: OrderedArrivals
    mark: Mark
    context: Context

    def passing(self, convert: Callable[[Values], Values], values: Values) -> Ids:
        """The moment after which this progress, in other units, is above each value."""
        nobody = np.zeros(len(values), np.int64)
        if not self.order.inferred:
            alone = replace(self.order, by_mark=())
            arrivals = OrderedArrivals.of(alone, self.new, None, self.mark, self.context)
            return arrivals.in_units(convert).passing(nobody, values)
        if self.order.by:
            return nobody + ended_at(self.context)  # groups never seen may still come
        return self.arrivals.in_units(convert).passing(nobody, values)


@dataclass(frozen=True)
class JoinSide:
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
    stored: pa.Table
    """New tuples to store, with all their columns."""
    shelved: pa.Table
    """New tuples that a sieve has dropped, without those that are dead; with all columns."""
    leaves: Ids | None = None
    """When the time of each tuple is over, if there is a timeout."""

    @staticmethod
    def of(
        side: int,
        on: str,
        keys: Sequence[str],
        new: pa.Table,
        old: pa.Table,
        arrivals: OrderedArrivals,
        band: BandProgress,
        timeout_us: int | None = None,
        passes: Mask | None = None,
        whole: pa.Schema | None = None,
    ) -> JoinSide:
        """What is alive of the stored tuples, and of the new ones what is not late.

        New tuples that do not pass find no partners. `whole` is the schema of what is stored, if
        only some columns of it are at hand.
        """
        whole = old.schema if whole is None else whole
        before = band.units.column(side, numbers(old[on])[0])
        alive = ~band.dead(side, before, band.bounds(before)[1], 0)
        counts = arrivals.counts
        if timeout_us is None:
            counts = counts & has_keys(new, keys)
        else:  # what has no partners is held, too: it is counted when its time is over
            alive &= leaving(old, timeout_us, arrivals.context) >= arrivals.context.first
        kept = _filtered(tuples(old, old.schema), alive)
        shelved = tuples(new.slice(0, 0), whole)
        if passes is not None and not passes.all():
            aside = counts & ~passes
            values = band.units.column(side, arrivals.values[aside])
            live = ~band.dead(side, values, band.bounds(values)[1], 1)
            shelved = _filtered(_filtered(tuples(new, whole), aside), live)
            counts = counts & passes
        fresh = _filtered(tuples(new, old.schema), counts)
        after = band.units.column(side, arrivals.values[counts])
        values = np.concatenate([before[alive], after])
        low, high = band.bounds(values)
        keep = ~band.dead(side, values, high, 1)
        rows = pa.concat_tables([kept, fresh]).combine_chunks()
        leaves = None
        if timeout_us is not None:
            leaves = leaving(rows, timeout_us, arrivals.context)
            keep &= leaves == NEVER
        stays = alive.copy()
        stays[alive] = keep[: kept.num_rows]
        stored = _filtered(_filtered(tuples(new, whole), counts), keep[kept.num_rows :])
        return JoinSide(
            rows, kept.num_rows, values, low, high, stays, keep[kept.num_rows :], stored, shelved,
            leaves,
        )  # fmt: skip

    def store(
        self,
        name: str,
        old: pa.Table,
        emitted: Emitted,
        *,
        anew: bool = False,
        whole: Callable[[], pa.Table] | None = None,
    ) -> int:
        """Put what is to be stored into the step's state; how many tuples are held then.

        `whole` gives all columns of what was stored.
        """
        changed = renewed(old, self.stays, self.stored, anew=anew, whole=whole)
        if changed is not None:
            emitted.state[name] = changed
        return int(self.stays.sum() + self.keep.sum())


def note_timeouts(
    emitted: Emitted,
    side: int,
    on: Values,
    high: Values,
    leaves: Ids,
    band: BandProgress,
    other: OtherSide,
) -> None:
    """Count the tuples of a side that go because their time is over, and not for another reason."""
    first = other.context.first
    going = np.flatnonzero((leaves >= first) & (leaves < NEVER))
    if len(going):
        dead = band.passing(side, on[going], high[going], other)
        count_timeouts(emitted, int((leaves[going] < dead).sum()))


def count_timeouts(emitted: Emitted, count: int) -> None:
    """Count tuples that went because their time was over."""
    if count:
        emitted.late[TIMEOUT] = emitted.late.get(TIMEOUT, 0) + count


def note_progress(
    emitted: Emitted,
    side: int,
    new: pa.Table,
    arrivals: OrderedArrivals,
    fields: Sequence[str] | None,
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
