"""What the experiments with continuous queries share: feeding trains, and memory of processes."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import auroral as au
from auroral.errors import RunError

_PROC = Path("/proc")
_LIMIT_S = 900


def feed(engine: au.Engine, stream: str, table: pa.Table) -> float:
    """One train from `enqueue` until it is processed; returns seconds."""
    started = time.perf_counter()
    engine.enqueue(stream, table)
    engine.drain()
    return time.perf_counter() - started


def matches_by_rule(engine: au.Engine, family: str) -> pa.Table:
    """Rules of a family and how often each has fired; members are called `family[key]`."""
    table = engine.matches(family)
    names = table["query"].to_pylist()
    rules = [int(name[len(family) + 1 : -1]) for name in names]
    return pa.table({"rule": rules, "matches": table["matches"]})


def write_parts(table: pa.Table, place: Path, parts: int) -> list[str]:
    """Write a train as so many files of equal size; returns their paths."""
    place.mkdir(parents=True, exist_ok=True)
    rows = -(-table.num_rows // parts)
    paths = [str(place / f"{part}.parquet") for part in range(parts)]
    for part, path in enumerate(paths):
        pq.write_table(table.slice(part * rows, rows), path)
    return paths


def answer_of(
    system: str, command: Sequence[str], environment: Mapping[str, str], place: Path
) -> dict[str, Any]:
    """What a system says that runs in a process of its own: JSON, in its last line."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            timeout=_LIMIT_S,
            env=environment,
            cwd=place,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = error.stderr.strip() if isinstance(error.stderr, str) else ""
        reason = said.splitlines()[-1] if said else str(error)
        raise RunError("SYSTEM_FAILED", f"{system} failed: {reason}") from error
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


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


@contextmanager
def peak_memory(every_s: float = 0.2) -> Iterator[dict[str, float]]:
    """Look at memory from here on; what is yielded has the most that was seen at one time.

    It is complete when the block ends.
    """
    most: dict[str, float] = {}
    over = threading.Event()

    def look() -> None:
        seen = memory_mb()
        if sum(seen.values()) > sum(most.values()):
            most.clear()
            most.update(seen)

    def watch() -> None:
        while not over.wait(every_s):
            look()

    watcher = threading.Thread(target=watch, name="memory", daemon=True)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join()
        look()


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
