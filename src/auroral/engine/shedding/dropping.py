"""Applying drop boxes to the files of a train, before the boxes of its superbox see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from auroral.ids import file_name
from auroral.shedding.choosing import without_dropped
from auroral.shedding.drops import Drop, Dropped, DropReason, Drops
from auroral.spark.running.executor import Files
from auroral.spark.running.train_file import TrainFile
from auroral.storage.segment import encode, read_file, write_file

LOST_BY = "lost: "
"""How the names of counters begin that count what an output has lost; the reason follows."""


@dataclass(frozen=True)
class DropCount:
    """Of how many tuples of an arc drop boxes have dropped how many."""

    taken: int
    by_reason: Mapping[DropReason, int] = field(default_factory=dict)

    @property
    def dropped(self) -> int:
        return sum(self.by_reason.values())


def leave_to_tasks(files: Files, drops: Drops) -> tuple[Files, dict[str, DropCount]]:
    """The files of a train, of which tasks drop some tuples when they read them."""
    told = {
        arc: [replace(file, drops=drops.get(arc, ())) for file in held]
        for arc, held in files.items()
    }
    return told, {arc: DropCount(sum(f.rows for f in files.get(arc, ()))) for arc in drops}


def counts_of(rows: Mapping[str, int], dropped: Dropped) -> dict[str, DropCount]:
    """What tasks have dropped of so many tuples."""
    return {arc: DropCount(rows[arc], by_reason) for arc, by_reason in dropped.items()}


def drop_tuples(
    files: Files,
    drops: Drops,
    directory: Path,
    in_memory: Callable[[Path], pa.Table | None] = lambda _path: None,
) -> tuple[Files, dict[str, DropCount]]:
    """The files of a train without what drop boxes drop, and how much that was by arc.

    Files of which something is dropped are written anew, into a directory. `in_memory` gives the
    tuples of segment files that need not be read.
    """
    kept = dict(files)
    counts: dict[str, DropCount] = {}
    for arc, boxes in drops.items():
        given = files.get(arc, ())
        left: list[TrainFile] = []
        gone: Counter[DropReason] = Counter()
        for number, file in enumerate(given):
            path = directory / f"kept-{number}-{file_name(arc)}.parquet"
            found, dropped = _kept(file, in_memory(file.path), boxes, path)
            gone.update(dropped)
            left += [found] if found.rows else []
        kept[arc] = left
        counts[arc] = DropCount(sum(file.rows for file in given), dict(gone))
    return kept, counts


def _kept(
    file: TrainFile, table: pa.Table | None, drops: Sequence[Drop], path: Path
) -> tuple[TrainFile, Mapping[DropReason, int]]:
    rows = read_file(str(file.path)) if table is None else table
    kept, dropped = without_dropped(rows, drops)
    if not dropped:
        return file, dropped
    if not kept.num_rows:
        return TrainFile(path, 0, 0), dropped
    size, _ = write_file(path, encode(kept), sync=False)
    return TrainFile(path, kept.num_rows, size), dropped
