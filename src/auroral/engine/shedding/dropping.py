"""Applying drop boxes to the files of a train, before the boxes of its superbox see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from auroral.ids import file_name
from auroral.shedding.choosing import without_dropped
from auroral.shedding.drops import Drop
from auroral.spark.running.executor import Files
from auroral.spark.running.train_file import TrainFile
from auroral.storage.segment import encode, read_file, write_file


@dataclass(frozen=True)
class DropCount:
    """Of how many tuples of an arc a drop box has dropped how many."""

    taken: int
    dropped: int


def drop_tuples(
    files: Files, drops: Mapping[str, Drop], directory: Path
) -> tuple[Files, dict[str, DropCount]]:
    """The files of a train without what drop boxes drop, and how much that was by arc.

    Files of which something is dropped are written anew, into a directory.
    """
    kept = dict(files)
    counts: dict[str, DropCount] = {}
    for arc, drop in drops.items():
        given = files.get(arc, ())
        found = [
            _kept(file, drop, directory / f"kept-{number}-{file_name(arc)}.parquet")
            for number, file in enumerate(given)
        ]
        kept[arc] = [file for file in found if file.rows]
        taken = sum(file.rows for file in given)
        counts[arc] = DropCount(taken, taken - sum(file.rows for file in kept[arc]))
    return kept, counts


def _kept(file: TrainFile, drop: Drop, path: Path) -> TrainFile:
    tuples = read_file(str(file.path))
    kept = without_dropped(tuples, drop)
    if kept.num_rows == file.rows:
        return file
    if not kept.num_rows:
        return TrainFile(path, 0, 0)
    size, _ = write_file(path, encode(kept), sync=False)
    return TrainFile(path, kept.num_rows, size)
