"""A step cut into smaller ones, where one would need too much memory at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from auroral.kernels.kernel import Appended, Context, Emitted
from auroral.kernels.ordering import whole

Step = Callable[[pa.Table, Mapping[str, pa.Table], Context], Emitted]


def in_parts(
    step: Step, table: pa.Table, state: Mapping[str, pa.Table], context: Context, most: int
) -> Emitted:
    """Take at most so many rows at a time, if moments allow; any cut gives the same emissions."""
    if table.num_rows <= most:
        return step(table, state, context)
    found = Emitted()
    made: list[dict[str, pa.Table]] = []
    for part, span in _parts(table, context, most):
        emitted = step(part, {**state, **_whole(found)}, span)
        made.append(emitted.ports)
        found.state |= emitted.state
        found.dead += emitted.dead
        found.held, found.pending = emitted.held, emitted.pending
        for reason, count in emitted.late.items():
            found.late[reason] = found.late.get(reason, 0) + count
    found.ports = {port: pa.concat_tables([part[port] for part in made]) for port in made[0]}
    return found


def _whole(emitted: Emitted) -> dict[str, pa.Table]:
    assert not any(isinstance(table, Appended) for table in emitted.state.values())
    return emitted.state


def _parts(table: pa.Table, context: Context, most: int) -> Iterator[tuple[pa.Table, Context]]:
    seq = np.asarray(whole(table["_seq"]), np.int64)
    cuts = np.unique(seq[most::most])
    firsts = [context.first, *cuts.tolist()]
    lasts = [*cuts.tolist(), context.last]
    for first, last in zip(firsts, lasts, strict=True):
        begin, end = np.searchsorted(seq, [first, last])
        yield table.slice(begin, end - begin), replace(context, first=first, last=last)
