"""Tuples that are held for a partner, and go when their time is over.

A tuple reaches a box at the time the clock has at the tuple's moment. It goes at the first moment
at which the clock exceeds that by the timeout, so two tuples meet only if they reached the box
within the timeout of each other.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from auroral.kernels.grouping import Ids
from auroral.kernels.kernel import NEVER, Context
from auroral.kernels.ordering import whole
from auroral.kernels.units import Mask
from auroral.kernels.windowing.closing import reached_at
from auroral.progress.lowwater import LowWater

REACHED = "_reached"
"""When a stored tuple reached the box, in µs."""


def with_reached(tuples: pa.Table, context: Context) -> pa.Table:
    """Tuples with the time at which they reached the box; 0 before the clock's first tick."""
    times = reached_at(context.clock, np.asarray(whole(tuples["_seq"]), np.int64))
    return tuples.append_column(REACHED, pa.array(times.astype(np.int64)))


def leaving(tuples: pa.Table, timeout_us: int, context: Context) -> Ids:
    """The moment at which each tuple's time is over; `NEVER` if it is not in this step.

    Of a tuple that went in an earlier step it is some moment before this one.
    """
    clock = context.clock or LowWater()
    due = np.asarray(whole(tuples[REACHED]), np.int64) + timeout_us
    found = np.searchsorted(clock.values, due, side="right")
    moments = np.append(clock.moments, NEVER)[found]
    return np.where(moments < context.last, moments, NEVER)


def meeting(sides: tuple[pa.Table, pa.Table], rows: tuple[Ids, Ids], timeout_us: int) -> Mask:
    """Which pairs of rows reached the box within the timeout of each other."""
    left, right = (
        np.asarray(whole(table[REACHED]), np.int64)[at]
        for table, at in zip(sides, rows, strict=True)
    )
    return np.asarray(np.abs(left - right) <= timeout_us)
