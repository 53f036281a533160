"""Parquet files that Spark or its tasks wrote, taken over as segments."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from auroral.disk import disk_errors, rename
from auroral.storage.segment import Segment, bounds_of, checksum, encode, write_file
from auroral.storage.store import Store


def write_part(path: Path, table: pa.Table) -> None:
    """Write a file that can be adopted."""
    write_file(path, encode(table), sync=False)


def adopt(store: Store, log: str, path: Path, complete_before: int) -> list[Segment]:
    """Take over the files that Spark wrote into a directory, one segment each."""
    segments = []
    progressing = store.progressing.get(log, ())
    for part in sorted(path.glob("part-*.parquet")):
        metadata = pq.read_metadata(part)
        if metadata.num_rows == 0:
            continue
        seen = pq.read_table(part, columns=["_seq", *progressing])
        moments = seen["_seq"].to_numpy()
        first, last = int(moments.min()), int(moments.max())
        target = store.new_path(first, last)
        size, crc = part.stat().st_size, checksum(part)
        with disk_errors(target):
            rename(part, target)
        store.needs_sync(target, content=True)
        rows, bounds = metadata.num_rows, bounds_of(seen, progressing)
        segments.append(
            Segment(0, log, target.name, rows, size, crc, first, last, complete_before, (), bounds)
        )
    shutil.rmtree(path, ignore_errors=True)
    return sorted(segments, key=lambda s: s.first)
