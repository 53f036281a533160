"""Flink counting matches of many queries; run by an interpreter that has it, without Auroral.

Reads a job from a file named on the command line and prints what it measured, both as JSON.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment

_FIELDS = "abcde"
_RUNS = ("few", "few", "many")
"""The second takes what it takes to start; without that the last is timed."""
_CSV = """
create table {name} (a int, b int, c int, d int, e int) with (
  'connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""
_COUNTS = """
create table {name} (query int, tuples bigint) with (
  'connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""


def counting(queries: list[Any], source: str) -> str:
    """All counts in one select."""
    columns = ", ".join(
        f"count(*) filter (where {condition(query)}) as q{number}"
        for number, query in enumerate(queries)
    )
    return f"select {columns} from {source}"


def condition(query: list[Any]) -> str:
    """A query as SQL."""
    return " and ".join(f"{field} {op} {constant}" for field, op, constant in query) or "true"


def environment(cores: int, *, streaming: bool) -> TableEnvironment:
    """A mini-cluster in this process with a slot for each core."""
    settings = EnvironmentSettings.new_instance()
    chosen = settings.in_streaming_mode() if streaming else settings.in_batch_mode()
    tables = TableEnvironment.create(chosen.build())
    config = tables.get_config()
    config.set("parallelism.default", str(cores))
    config.set("table.exec.mini-batch.enabled", "true")
    config.set("table.exec.mini-batch.allow-latency", "5 s")
    config.set("table.exec.mini-batch.size", "50000")
    config.set("table.optimizer.agg-phase-strategy", "TWO_PHASE")
    return tables


def count(tables: TableEnvironment, statement: str) -> tuple[float, list[int]]:
    """Run a query; of the rows it gives the last one is the result."""
    started = time.perf_counter()
    last: list[int] = []
    with tables.execute_sql(statement).collect() as rows:
        for row in rows:
            last = list(row)
    return time.perf_counter() - started, last


def count_each(
    tables: TableEnvironment, queries: list[Any], source: str, place: Path
) -> tuple[float, list[int]]:
    """Run a statement for each query, all in one set: Flink reads the source once for them."""
    name = f"counts_{len(tables.list_tables())}"
    tables.execute_sql(_COUNTS.format(name=name, path=(place / name).as_uri()))
    statements = tables.create_statement_set()
    for number, query in enumerate(queries):
        where = condition(query)
        statements.add_insert_sql(
            f"insert into {name} select {number}, count(*) from {source} where {where}"
        )
    started = time.perf_counter()
    statements.execute().wait()
    seconds = time.perf_counter() - started
    counts = [0] * len(queries)
    for path in (place / name).rglob("*"):
        if path.is_file():
            for line in path.read_text(encoding="utf-8").split():
                at, found = line.split(",")
                counts[int(at)] = int(found)
    return seconds, counts


def load(files: list[str], rows: int) -> pa.Table:
    """The first so many tuples of files."""
    held = [pq.read_table(path, columns=list(_FIELDS)) for path in files]
    return pa.concat_tables(held).slice(0, rows)


def register(tables: TableEnvironment, name: str, data: pa.Table, arrow: bool, place: Path) -> None:
    """Let Flink know a table: as Arrow batches, or as CSV files, one for each core."""
    if arrow:
        fields = [DataTypes.FIELD(field, DataTypes.INT()) for field in _FIELDS]
        held = tables.from_pandas(data.to_pandas(), DataTypes.ROW(fields), 8)
        tables.create_temporary_view(name, held)
        return
    directory = place / name
    directory.mkdir()
    size = -(-data.num_rows // 8)
    for part in range(8):
        options = pa.csv.WriteOptions(include_header=False)
        pa.csv.write_csv(data.slice(part * size, size), directory / f"{part}.csv", options)
    tables.execute_sql(_CSV.format(name=name, path=directory.as_uri()))


def main() -> None:
    """Run every way that the job names; what a tiny run takes is start-up, and left out."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    results = []
    for way, rows in job["ways"].items():
        tables = environment(job["cores"], streaming=way.startswith("streaming"))
        data = load(job["files"], rows)
        with tempfile.TemporaryDirectory() as made:
            for name, some in (("few", data.slice(0, 1_000)), ("many", data)):
                register(tables, name, some, way.endswith("arrow"), Path(made))
            if way.endswith("each"):
                runs = [count_each(tables, job["queries"], name, Path(made)) for name in _RUNS]
            else:
                runs = [count(tables, counting(job["queries"], name)) for name in _RUNS]
        start_up, (seconds, counts) = runs[1][0], runs[-1]
        # On a busy machine a start may take longer than the next one: never more than half.
        taken = max(seconds - start_up, seconds / 2)
        results.append({"way": way, "tuples": data.num_rows, "seconds": taken, "counts": counts})
    version = importlib.metadata.version("apache-flink")
    print(json.dumps({"version": version, "results": results}))  # noqa: T201


if __name__ == "__main__":
    main()
