"""Join by arrival numbers: the earlier must be among the latest tuples of its side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from auroral.kernels.arrivals import NUMBER, ended_at
from auroral.kernels.grouping import Ids
from auroral.kernels.joining.pairs import band_pairs, paired
from auroral.kernels.joining.sides import SIDES, count_timeouts, key_numbers
from auroral.kernels.kernel import NEVER, Context, Emitted
from auroral.kernels.stored import renewed, tuples
from auroral.kernels.units import Mask
from auroral.kernels.windowing.timeouts import leaving, meeting


def joined_rows(
    latest: tuple[int, int],
    keys: Sequence[Sequence[str]],
    fields: Sequence[Sequence[str]],
    old: Sequence[pa.Table],
    new: Sequence[pa.Table],
    context: Context,
    timeout_us: int | None = None,
) -> Emitted:
    """Pair each tuple with those of the other side that are among the latest when it arrives."""
    counts = [int(np.max(np.asarray(table[NUMBER]), initial=0)) for table in old]
    fresh = [_numbered(table, count) for table, count in zip(new, counts, strict=True)]
    rows, stays = [], []
    for side in (0, 1):
        alive = np.asarray(old[side][NUMBER]) > counts[side] - latest[side]
        if timeout_us is not None:
            alive &= leaving(old[side], timeout_us, context) >= context.first
        stays.append(alive)
        kept, more = (tuples(table, old[side].schema) for table in (old[side], fresh[side]))
        rows.append(pa.concat_tables([kept.filter(pa.array(alive)), more]).combine_chunks())
    pairs = _pairs(latest, keys, rows, fresh, counts)
    if timeout_us is not None:
        met = meeting((rows[0], rows[1]), (pairs[0], pairs[1]), timeout_us)
        pairs = [at[met] for at in pairs]
    emitted = Emitted({"": paired(rows, pairs, fields)}, held=0)
    over = ended_at(context) < NEVER
    for side, name in enumerate(SIDES):
        # Numbers up to this one are not among the latest any more.
        bound = counts[side] + fresh[side].num_rows - (0 if over else latest[side])
        keep = np.asarray(fresh[side][NUMBER]) > bound
        if timeout_us is not None:
            leaves = leaving(rows[side], timeout_us, context)
            gone = _timed_out(rows[side], leaves, fresh[side], counts[side] - latest[side])
            count_timeouts(emitted, int((gone & (leaves < ended_at(context))).sum()))
            stays[side] &= leaving(old[side], timeout_us, context) == NEVER
            keep &= leaving(fresh[side], timeout_us, context) == NEVER
        stays[side] &= np.asarray(old[side][NUMBER]) > bound
        kept = fresh[side].filter(pa.array(keep))
        changed = renewed(old[side], stays[side], kept)
        if changed is not None:
            emitted.state[name] = changed
        emitted.held = (emitted.held or 0) + int(stays[side].sum()) + kept.num_rows
    return emitted


def _timed_out(rows: pa.Table, leaves: Ids, fresh: pa.Table, bound: int) -> Mask:
    """Which tuples are among the latest of their side when their time is over."""
    arrived = np.searchsorted(np.asarray(fresh["_seq"], np.int64), leaves, side="right")
    among = np.asarray(rows[NUMBER]) > bound + arrived
    return np.asarray((leaves < NEVER) & among)


def _numbered(table: pa.Table, count: int) -> pa.Table:
    return table.append_column(NUMBER, pa.array(np.arange(1, table.num_rows + 1) + count))


def _pairs(
    latest: tuple[int, int],
    keys: Sequence[Sequence[str]],
    rows: Sequence[pa.Table],
    fresh: Sequence[pa.Table],
    counts: Sequence[int],
) -> list[Ids]:
    """Pairs whose later tuple is new, whichever side it is of."""
    ids, count = key_numbers(rows, keys)
    seq = [np.asarray(table["_seq"], np.int64) for table in fresh]
    found = []
    for side in (0, 1):
        other = 1 - side
        # At one moment the left tuples arrive before the right ones.
        arrived = np.searchsorted(seq[other], seq[side], side="left" if side == 0 else "right")
        arrived = arrived + counts[other]
        start = rows[side].num_rows - fresh[side].num_rows
        number = np.asarray(rows[other][NUMBER])
        at, partner = band_pairs(
            ids[side][start:], arrived - latest[other] + 1, arrived, ids[other], number, count
        )
        found.append((at + start, partner))
    (left, right), (later_right, earlier_left) = found
    return [np.concatenate([left, earlier_left]), np.concatenate([right, later_right])]
