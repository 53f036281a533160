"""Pathway counting matches of many queries; run by an interpreter that has it, without Auroral.

Reads a job from a file named on the command line and prints what it measured, both as JSON.
"""

from __future__ import annotations

import json
import operator
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pathway as pw
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

_FIELDS = "abcde"
_COMPARE = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}


class Tuple(pw.Schema):  # type: ignore[misc]
    """What the queries look at."""

    a: int
    b: int
    c: int
    d: int
    e: int


def condition(table: Any, query: list[Any]) -> Any:
    """A query as an expression of Pathway, evaluated by its engine and not by Python."""
    if not query:
        return table.a == table.a
    parts = [_COMPARE[op](table[field], constant) for field, op, constant in query]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole & part
    return whole


def summed(table: Any, queries: list[Any]) -> list[Any]:
    """One reduction with a sum for each query."""
    sums = {
        f"q{number}": pw.reducers.sum(pw.if_else(condition(table, query), 1, 0))
        for number, query in enumerate(queries)
    }
    return [table.reduce(**sums)]


def filtered(table: Any, queries: list[Any]) -> list[Any]:
    """A filter and a count for each query."""
    return [
        table.filter(condition(table, query)).reduce(**{f"q{number}": pw.reducers.count()})
        for number, query in enumerate(queries)
    ]


def run(way: str, queries: list[Any], place: str) -> tuple[float, list[int]]:
    """Count over the CSV files of a directory; static, so that nothing is kept for updates."""
    pw.internals.parse_graph.G.clear()
    table = pw.io.csv.read(place, schema=Tuple, mode="static")
    found: dict[str, int] = {}

    def note(row: dict[str, Any], is_addition: bool, **_told: Any) -> None:
        if is_addition:
            found.update(row)

    for counted in {"sums": summed, "filters": filtered}[way](table, queries):
        pw.io.subscribe(counted, on_change=note)
    started = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    seconds = time.perf_counter() - started
    return seconds, [found.get(f"q{number}", 0) for number in range(len(queries))]


def write_csv(files: list[str], rows: int, place: Path) -> int:
    """The first so many tuples of files as CSV, which Pathway reads; returns how many."""
    place.mkdir()
    written = 0
    for number, path in enumerate(files):
        table = pq.read_table(path, columns=list(_FIELDS)).slice(0, rows - written)
        if table.num_rows:
            pa.csv.write_csv(table, place / f"{number:05d}.csv")
        written += table.num_rows
    return written


def main() -> None:
    """Run every way that the job names; what a tiny run takes is start-up, and left out."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    results = []
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        write_csv(job["files"][:1], 1_000, place / "tiny")
        for way, rows in job["ways"].items():
            count = write_csv(job["files"], rows, place / way)
            start_up, _ = run(way, job["queries"], str(place / "tiny"))
            seconds, counts = run(way, job["queries"], str(place / way))
            # On a busy machine a start may take longer than the next one: never more than half.
            taken = max(seconds - start_up, seconds / 2)
            results.append({"way": way, "tuples": count, "seconds": taken, "counts": counts})
    print(json.dumps({"version": pw.__version__, "results": results}))  # noqa: T201


if __name__ == "__main__":
    main()
