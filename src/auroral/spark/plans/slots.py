"""Slots: fixed file names under which a compiled plan finds each train's segments.

Planning a job costs Spark more than running a small one. A plan is therefore compiled once over
slots, and before each step the train's segment files are linked into them; re-running the same
plan then costs less than the smallest new Spark job (docs/adr/0002). Slots are planned at
`MAX_FILE_BYTES`, longer than any segment, because Spark reads no further than the length it
planned with. Only for a local master: elsewhere a file changing under its name may be cached.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from auroral.disk import disk_errors
from auroral.ids import file_name
from auroral.spark.running.train_file import TrainFile
from auroral.storage.segment import MAX_FILE_BYTES, encode, write_file

MOST_SLOTS = 16


class Slots:
    """The slot files of one compiled plan."""

    def __init__(
        self, directory: Path, counts: Mapping[str, int], schemas: Mapping[str, pa.Schema]
    ):
        self.directory = directory
        self.files: dict[str, list[str]] = {}
        self._empty: dict[str, Path] = {}
        with disk_errors(directory):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            for source, count in counts.items():
                own = file_name(source)
                self.files[source] = [str(directory / f"{own}-{n}.parquet") for n in range(count)]
                for name in self.files[source]:
                    with open(name, "wb") as file:
                        file.truncate(MAX_FILE_BYTES)
                self._empty[source] = directory / f"{own}-empty.parquet"
                write_file(self._empty[source], encode(schemas[source].empty_table()), sync=False)

    def link(self, train: Mapping[str, Sequence[Path]]) -> None:
        """Put a train's files into the slots; slots left over hold no tuples."""
        with disk_errors(self.directory):
            for source, slots in self.files.items():
                paths = train.get(source, ())
                for number, slot in enumerate(slots):
                    target = paths[number] if number < len(paths) else self._empty[source]
                    os.unlink(slot)
                    os.link(target, slot)


def slot_count(files: int) -> int:
    """How many slots a plan for that many files has: a power of two, so few plans serve all.

    >>> [slot_count(files) for files in (1, 2, 3, 8)]
    [1, 2, 4, 8]
    """
    return 1 << (files - 1).bit_length()


def fit_slots(train: Mapping[str, Sequence[TrainFile]]) -> bool:
    """Whether the files of a train are few and small enough for slots."""
    few = all(len(files) <= MOST_SLOTS for files in train.values())
    return few and all(f.bytes <= MAX_FILE_BYTES for files in train.values() for f in files)
