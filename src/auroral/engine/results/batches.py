"""What a log holds, as the steps that wrote it and as those who read it see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

from auroral.network.types import HIDDEN
from auroral.storage import Segment

NOTHING = pa.table({"_seq": pa.array([], pa.int64()), "_ts": pa.array([], pa.int64())})


def steps_of(segments: Sequence[Segment]) -> Iterator[tuple[int, list[Segment]]]:
    """Segments step by step; steps that emitted one moment together go together."""
    run: list[Segment] = []
    complete_before = 0
    ordered = sorted(segments, key=lambda s: (s.complete_before, s.first))
    firsts = [*accumulate((s.first for s in reversed(ordered)), min)][::-1]
    for segment, first_of_later in zip(ordered, firsts, strict=True):
        if run and segment.complete_before > complete_before and first_of_later >= complete_before:
            yield complete_before, run
            run = []
        run.append(segment)
        complete_before = segment.complete_before
    if run:
        yield complete_before, run


def visible(table: pa.Table) -> pa.Table:
    """Tuples without their hidden columns."""
    return table.drop_columns([name for name in HIDDEN if name in table.column_names])


def moment(table: pa.Table, index: int) -> tuple[int, bytes]:
    """When a tuple was emitted."""
    sub: Any = table["_sub"][index].as_py() if "_sub" in table.column_names else None
    return table["_seq"][index].as_py(), sub or b""
