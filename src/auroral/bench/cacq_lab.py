"""What the experiments with continuous queries share: feeding trains, and memory of processes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import auroral as au

_PROC = Path("/proc")


@dataclass(frozen=True)
class Lab:
    """One run of the benchmark: Spark, how much work, where files go, and who has the peers."""

    spark: SparkSession
    quick: bool
    place: Path
    peers: Sequence[Path] = ()

    @property
    def files(self) -> int:
        """Files of a train, so that plain Spark can read it with every core."""
        return min(os.cpu_count() or 2, 8)

    def rows(self, full: int) -> int:
        """So many tuples or queries; a tenth if in a hurry."""
        return max(full // 10, 1) if self.quick else full

    def steps(self, full: int, quick: int) -> int:
        """So many trains."""
        return quick if self.quick else full

    def say(self, text: str) -> None:
        """Tell a person who watches how far we are."""
        if sys.stderr.isatty():
            sys.stderr.write(f"bench: {text}\n")
            sys.stderr.flush()

    def engine(self, network: au.Network, train: int) -> au.Engine:
        """An engine on the shared session; without threads, so that trains are what we say."""
        return au.Engine(network, spark=self.spark, train=train, background=False)


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
