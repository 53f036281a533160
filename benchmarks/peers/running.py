"""Other stream processors from PyPI counting the same matches: Flink, Bytewax and Pathway.

Their dependencies clash with ours and with each other's, so each runs in an interpreter of its
own, any that has it: `--peers PATH_TO_PYTHON`, or the one that runs the benchmark.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from auroral.errors import UsageError
from benchmarks.cacq.data import Conjunction, Queries
from benchmarks.cacq.lab import answer_of

NOT_INSTALLED = "not installed"


@dataclass(frozen=True)
class Peer:
    """A system, the script that runs it, and its ways."""

    name: str
    module: str
    ways: Mapping[str, tuple[Queries, int]]
    """With how many tuples each has time for."""
    processes: bool = False
    """Whether it takes a process, with its share of the files, to use a core."""

    @property
    def script(self) -> Path:
        return Path(__file__).with_name(f"run_{self.name.lower()}.py")


PEERS = (
    Peer(
        "Flink",
        "pyflink",
        {
            "batch csv, a statement each": ("each", 1_000_000),
            "batch csv": ("merged", 4_000_000),
            "batch arrow": ("merged", 4_000_000),
            "streaming csv": ("merged", 2_000_000),
        },
    ),
    Peer(
        "Bytewax",
        "bytewax",
        {
            "filters": ("each", 50_000),
            "python": ("merged", 500_000),
            "numpy": ("by hand", 4_000_000),
        },
        processes=True,
    ),
    Peer("Pathway", "pathway", {"sums": ("merged", 200_000), "filters": ("each", 100_000)}),
)


@dataclass(frozen=True)
class Measured:
    """What a peer did in one of its ways."""

    peer: str
    way: str
    queries: Queries
    tuples: int
    rate: float
    counts: list[int]
    processes: int = 1

    def read(self, files: Sequence[str]) -> list[pa.Table]:
        """The tuples it has seen: each process the first ones of its files."""
        rows = self.tuples // self.processes
        shares = (files[part :: self.processes] for part in range(self.processes))
        return [pa.concat_tables(map(pq.read_table, share)).slice(0, rows) for share in shares]


def require_interpreters(paths: Sequence[Path]) -> None:
    """Reject a path that is no program, before anything is measured."""
    for path in paths:
        if shutil.which(path) is None:
            raise UsageError("NO_INTERPRETER", f"there is no interpreter {path}")


def find_interpreter(peer: Peer, interpreters: Sequence[Path]) -> Path | None:
    """The first interpreter that has the peer; ours is tried last."""
    for path in (*interpreters, Path(sys.executable)):
        code = (
            f"import importlib.util, sys; sys.exit(not importlib.util.find_spec({peer.module!r}))"
        )
        done = subprocess.run([path, "-c", code], capture_output=True, check=False)
        if done.returncode == 0:
            return path
    return None


def run_peer(
    peer: Peer,
    interpreter: Path,
    files: Sequence[str],
    queries: Sequence[Conjunction],
    place: Path,
    share: float = 1.0,
) -> list[Measured]:
    """Count in each of its ways over the files, with every core."""
    cores = os.cpu_count() or 2
    parts = cores if peer.processes else 1
    tests = [[[p.field, p.op, p.constant] for p in query] for query in queries]
    found: list[Measured] = []
    for way, (_, full) in peer.ways.items():
        rows = max(int(full * share) // parts, 1)
        jobs = []
        for part in range(parts):
            job = {"files": files[part::parts], "queries": tests, "cores": cores}
            jobs.append(place / f"{peer.name}-{len(found)}-{part}.json")
            jobs[-1].write_text(json.dumps(job | {"ways": {way: rows}}), encoding="utf-8")
        with ThreadPoolExecutor(parts) as pool:
            answers = list(pool.map(lambda job: _answer(peer, interpreter, job), jobs))
        found.append(_together(f"{peer.name} {answers[0]['version']}", peer, way, answers))
    return found


def _together(name: str, peer: Peer, way: str, answers: Sequence[dict[str, Any]]) -> Measured:
    """The processes as one system: it is done when the last of them is."""
    results = [answer["results"][0] for answer in answers]
    tuples = sum(result["tuples"] for result in results)
    counts = [sum(each) for each in zip(*(result["counts"] for result in results), strict=True)]
    seconds = max(result["seconds"] for result in results)
    return Measured(name, way, peer.ways[way][0], tuples, tuples / seconds, counts, len(answers))


def _answer(peer: Peer, interpreter: Path, job: Path) -> dict[str, Any]:
    settings = {"PATHWAY_THREADS": str(os.cpu_count() or 2)} if peer.name == "Pathway" else {}
    # Not our module path: a peer must find its own packages.
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [str(interpreter), str(peer.script), str(job)]
    return answer_of(peer.name, command, inherited | settings, job.parent)
