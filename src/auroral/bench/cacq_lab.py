"""What the experiments with continuous queries share: feeding trains, and memory of processes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import auroral as au

_PROC = Path("/proc")


def feed(engine: au.Engine, stream: str, table: pa.Table) -> float:
    """One train from `enqueue` until it is processed; returns seconds."""
    started = time.perf_counter()
    engine.enqueue(stream, table)
    engine.drain()
    return time.perf_counter() - started


def write_parts(table: pa.Table, place: Path, parts: int) -> list[str]:
    """Write a train as so many files of equal size; returns their paths."""
    place.mkdir(parents=True, exist_ok=True)
    rows = -(-table.num_rows // parts)
    paths = [str(place / f"{part}.parquet") for part in range(parts)]
    for part, path in enumerate(paths):
        pq.write_table(table.slice(part * rows, rows), path)
    return paths


def memory_mb(root: int | None = None) -> dict[str, float]:
    """Memory of a process and all it started, by the program's name; shared pages count once."""
    if not (_PROC / "self" / "smaps_rollup").exists():
        return {}
    parents: dict[int, int] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            fields = _read(entry / "stat").rpartition(")")[2].split()
            if fields:
                parents[int(entry.name)] = int(fields[1])
    found: dict[str, float] = {}
    for process in family_of(root or os.getpid(), parents):
        name = _read(_PROC / str(process) / "comm").strip()
        lines = _read(_PROC / str(process) / "smaps_rollup").splitlines()
        pss = sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        if pss:
            found[name] = found.get(name, 0.0) + pss / 1024
    return found


def family_of(root: int, parents: dict[int, int]) -> list[int]:
    """A process and its descendants."""
    found = [root]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def _read(path: Path) -> str:
    """The text of a file of /proc; empty if the process is gone."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
