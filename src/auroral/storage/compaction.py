"""Which segments of a log to merge (pure)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from auroral.storage.segment import MAX_FILE_BYTES, Segment

SMALL_ROWS = 65_536
FAN_IN = 32
"""A log is left alone until it has this many small segments in a row."""


def runs_to_merge(log: Sequence[Segment]) -> list[list[Segment]]:
    """Runs of neighbouring small segments of like size, each run to become one segment.

    Merging waits for FAN_IN neighbours of one order of size, so a tuple is rewritten O(log n)
    times at most.
    """
    runs: list[list[Segment]] = []
    run: list[Segment] = []
    for segment in log:
        if run and _order(run[-1]) != _order(segment):
            runs.append(run)
            run = []
        size = sum(s.bytes for s in run) + segment.bytes
        if segment.rows >= SMALL_ROWS or size > MAX_FILE_BYTES // 2 or segment.file is None:
            runs.append(run)
            run = [] if segment.rows >= SMALL_ROWS or segment.file is None else [segment]
        else:
            run.append(segment)
    runs.append(run)
    return [run for run in runs if len(run) >= FAN_IN]


def _order(segment: Segment) -> int:
    """How often the rows of a segment may have been merged: the exponent of FAN_IN."""
    return (max(segment.rows, 1).bit_length() - 1) // (FAN_IN.bit_length() - 1)


def merged(tables: Sequence[pa.Table]) -> pa.Table:
    """The tuples of several segments in order."""
    # Steps in which no moment could repeat have no `_sub`.
    table = pa.concat_tables(tables, promote_options="default")
    moments = table["_seq"].to_numpy()
    if np.all(moments[1:] > moments[:-1]):
        return table
    keys = ["_seq", *(["_sub"] if "_sub" in table.column_names else [])]
    return table.sort_by([(key, "ascending") for key in keys])
