"""Bytewax counting matches of many queries; run by an interpreter that has it, without Auroral.

Reads a job from a file named on the command line and prints what it measured, both as JSON.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import bytewax.operators as op
import numpy as np
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.testing import TestingSink, run_main

_FIELDS = "abcde"
_BATCH = 10_000
Row = tuple[int, ...]
Step = Callable[[list[Any]], list[tuple[str, int]]]


class Rows(StatelessSourcePartition[Any]):  # type: ignore[misc]
    """Batches that are in memory already: reading files costs Bytewax nothing here."""

    def __init__(self, batches: list[list[Any]]):
        self._left = iter(batches)

    def next_batch(self) -> list[Any]:
        batch = next(self._left, None)
        if batch is None:
            raise StopIteration
        return batch


class Source(DynamicSource[Any]):  # type: ignore[misc]
    """The same batches for every worker; there is one."""

    def __init__(self, batches: list[list[Any]]):
        self._batches = batches

    def build(self, _step: str, _index: int, _count: int) -> Rows:
        return Rows(self._batches)


def expression(query: list[Any]) -> str:
    """A query as Python over the fields by name."""
    return " and ".join(f"{field} {op_} {constant}" for field, op_, constant in query) or "True"


def with_filters(queries: list[Any], batches: list[list[Any]]) -> tuple[float, list[int]]:
    """A filter and a count for each query, as its guide shows."""
    flow = Dataflow("filters")
    stream = op.input("in", flow, Source(batches))
    found: list[Any] = []
    for number, query in enumerate(queries):
        test = eval(f"lambda row: (lambda a, b, c, d, e: {expression(query)})(*row)")
        kept = op.filter(f"filter{number}", stream, test)
        name = str(number)
        counted = op.count_final(f"count{number}", kept, lambda _row, name=name: name)
        op.output(f"out{number}", counted, TestingSink(found))
    return _run(flow, found, len(queries))


def with_python(queries: list[Any], batches: list[list[Any]]) -> tuple[float, list[int]]:
    """All predicates in one generated function, called for each tuple of a batch."""
    lines = "\n        ".join(
        f"if {expression(query)}: n{number} += 1" for number, query in enumerate(queries)
    )
    zeros = " = ".join(f"n{number}" for number in range(len(queries)))
    given = ", ".join(f"('{number}', n{number})" for number in range(len(queries)))
    space: dict[str, Any] = {}
    exec(
        f"def step(rows):\n    {zeros} = 0\n    for a, b, c, d, e in rows:\n        {lines}\n"
        f"    return [{given}]\n",
        space,
    )
    return _batchwise("python", space["step"], queries, batches)


def with_numpy(queries: list[Any], batches: list[list[Any]]) -> tuple[float, list[int]]:
    """Batches as items, each counted by numpy: Bytewax only hands them over."""
    arrays = [[np.array(batch, dtype=np.int32).T.copy()] for batch in batches]
    names = {name: place for place, name in enumerate(_FIELDS)}
    compare = {"<": np.less, ">": np.greater, "<=": np.less_equal, ">=": np.greater_equal}

    def step(items: list[Any]) -> list[tuple[str, int]]:
        given = []
        for columns in items:
            for number, query in enumerate(queries):
                matched = np.ones(columns.shape[1], dtype=bool)
                for field, op_, constant in query:
                    matched &= compare[op_](columns[names[field]], constant)
                given.append((str(number), int(np.count_nonzero(matched))))
        return given

    return _batchwise("numpy", step, queries, arrays)


def _batchwise(
    name: str, step: Step, queries: list[Any], batches: list[list[Any]]
) -> tuple[float, list[int]]:
    flow = Dataflow(name)
    stream = op.input("in", flow, Source(batches))
    counts = op.flat_map_batch("match", stream, step)
    total = op.reduce_final("total", counts, lambda one, other: one + other)
    found: list[Any] = []
    op.output("out", total, TestingSink(found))
    return _run(flow, found, len(queries))


def _run(flow: Dataflow, found: list[Any], queries: int) -> tuple[float, list[int]]:
    started = time.perf_counter()
    run_main(flow)
    seconds = time.perf_counter() - started
    totals = Counter({int(name): count for name, count in found})
    return seconds, [totals[number] for number in range(queries)]


def batches(files: list[str], rows: int) -> Iterator[list[Row]]:
    """The first so many tuples of files, in batches of Python tuples."""
    for path in files:
        table = pq.read_table(path, columns=list(_FIELDS)).slice(0, rows)
        rows -= table.num_rows
        tuples = list(zip(*(table[name].to_pylist() for name in _FIELDS), strict=True))
        yield from (tuples[at : at + _BATCH] for at in range(0, len(tuples), _BATCH))


def main() -> None:
    """Run every way that the job names, over as many tuples as it says."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    ways = {"filters": with_filters, "python": with_python, "numpy": with_numpy}
    results = []
    for way, rows in job["ways"].items():
        held = list(batches(job["files"], rows))
        ways[way](job["queries"], held[:1])
        seconds, counts = ways[way](job["queries"], held)
        count = sum(map(len, held))
        results.append({"way": way, "tuples": count, "seconds": seconds, "counts": counts})
    print(json.dumps({"version": importlib.metadata.version("bytewax"), "results": results}))  # noqa: T201


if __name__ == "__main__":
    main()
