"""History, ad hoc queries, tables, and networks that change while they run.

Each experiment is a function of a report and a lab; `EXPERIMENTS` lists them. The one in this file
looks up what is kept, next to scanning it and to plain Spark on the same files.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from auroral.history import KeptMoments, KeyedHistory, choose_access, key_predicate
from auroral.network.types import Schema
from auroral.spark.session.session import start_session
from auroral.storage import Change, Store, UnwrittenSegment
from benchmarks.ad_hoc import catching_up, first_row
from benchmarks.keeping import keeping
from benchmarks.lab import Experiments, Lab, choose, run_experiments
from benchmarks.live_changes import changes
from benchmarks.report import Report
from benchmarks.tables import tables

LOOKUP = "Rows of one key, and of a range of keys, among those kept"
ORGANISED = "Organising history by key, in the background"
SCHEMA = Schema.parse("sid bigint, time bigint, pos int, speed double")
_LOG, _POINT = "across", "recent"
_TUPLES = 20_000_000
_BATCH = 1_000_000
_ROWS_PER_KEY = 200
_RANGE_KEYS = 20


def synthetic_history(store: Store, tuples: int, *, seed: int = 5) -> None:
    """Write a log of tuples with random keys, as steps would have done."""
    random = np.random.default_rng(seed)
    keys = max(tuples // _ROWS_PER_KEY, 1)
    heads = {(_LOG, f"history@{_POINT}"): 0}
    for first in range(0, tuples, _BATCH):
        count = min(_BATCH, tuples - first)
        moments = np.arange(first, first + count)
        table = pa.table(
            {
                "_seq": moments,
                "_ts": moments // 1_000,
                "sid": random.integers(0, keys, count),
                "time": moments // 50,
                "pos": random.integers(0, 100, count, np.int32),
                "speed": random.random(count),
            }
        )
        fresh = [UnwrittenSegment(_LOG, table, first + count)]
        store.commit(Change(fresh=fresh, next_moment=first + count, heads=heads))
        heads = {}


def organise(history: KeyedHistory, tuples: int) -> float:
    """Do all the work of the background thread at once; how long it took."""
    started = time.perf_counter()
    while history.work(KeptMoments(0, tuples)):
        pass
    return time.perf_counter() - started


def lookup(report: Report, lab: Lab) -> None:
    """The same questions to the runs, to the log, and to plain Spark on the files of the log."""
    tuples = lab.rows(_TUPLES)
    store = Store(lab.place / "state", cores=lab.files, durability="process")
    try:
        lab.say(f"writing {tuples:,} tuples")
        synthetic_history(store, tuples)
        history = KeyedHistory(store, _POINT, _LOG, SCHEMA, "sid")
        lab.say("organising them by key")
        seconds = organise(history, tuples)
        kept = history.statistics()
        section = report.section(
            ORGANISED, "tuples", "distinct_keys", "runs", "log_mb", "runs_mb", "tuples_per_s"
        )
        log_mb, runs_mb = kept.bytes / 2**20, kept.indexed_bytes / 2**20
        rate = tuples / seconds
        section.rows.append((tuples, kept.distinct_keys, kept.runs, log_mb, runs_mb, rate))
        _compare(report, lab, store, history, tuples)
    finally:
        store.close()


def _compare(report: Report, lab: Lab, store: Store, history: KeyedHistory, tuples: int) -> None:
    section = report.section(
        LOOKUP, "question", "way", "median_ms", "rows", "rows_read", "rows_kept", "mb_read"
    )
    paths = [str(store.path_of(segment)) for segment in store.segments(_LOG)]
    frame = lab.spark.read.parquet(*paths)
    arrow = ds.dataset(paths)
    keys = max(tuples // _ROWS_PER_KEY, 1)
    random = np.random.default_rng(11)
    chosen = random.integers(0, max(keys - _RANGE_KEYS, 1), 20).tolist()
    medians: dict[tuple[str, str], float] = {}
    for question, wheres in (
        ("one key", [f"sid = {key}" for key in chosen]),
        (f"{_RANGE_KEYS} keys", [f"sid BETWEEN {k} AND {k + _RANGE_KEYS - 1}" for k in chosen]),
    ):
        ways: dict[str, tuple[int, Callable[[str], Any]]] = {
            "lookup": (20, lambda where: _found(history, where)),
            "scan": (3, lambda where: history.scan(_predicate(where), 0, tuples).rows),
            "Arrow's scanner": (3, lambda where: arrow.to_table(filter=_arrow_filter(where))),
            "plain Spark": (5, lambda where: frame.where(where).toArrow()),
        }
        counts: dict[str, int] = {}
        for way, (times, ask) in ways.items():
            lab.say(f"{question}: {way}")
            ask(wheres[0])
            seconds, found = [], 0
            before = history.statistics()
            for where in wheres[:times]:
                started = time.perf_counter()
                found += ask(where).num_rows
                seconds.append(time.perf_counter() - started)
            after = history.statistics()
            counts[way] = ask(wheres[0]).num_rows
            medians[question, way] = statistics.median(seconds)
            read, kept, size = tuples, tuples, after.bytes
            if way == "lookup":
                read = (after.rows_read - before.rows_read) // times
                size = (after.bytes_read - before.bytes_read) // times
            rows = found // times
            milliseconds = medians[question, way] * 1e3
            section.rows.append((question, way, milliseconds, rows, read, kept, size / 2**20))
        assert len(set(counts.values())) == 1, counts
    # Whichever of the two scans is faster.
    scan = min(medians["one key", "scan"], medians["one key", "Arrow's scanner"])
    report.bar("rows of one key: scan / lookup", scan / medians["one key", "lookup"], least=30.0)
    spark = medians["one key", "plain Spark"] / medians["one key", "lookup"]
    report.bar("rows of one key: plain Spark / lookup", spark, least=30.0)


def _predicate(where: str) -> Any:
    predicate = key_predicate(where, SCHEMA, "sid")
    assert predicate is not None
    return predicate


def _found(history: KeyedHistory, where: str) -> pa.Table:
    """What a query that begins with a filter gets, its plan included."""
    predicate = _predicate(where)
    last = history.statistics().rows
    assert choose_access(history.plan(predicate, 0, last)).how == "lookup"
    return history.lookup(predicate, 0, last).rows


def _arrow_filter(where: str) -> Any:
    (interval,) = _predicate(where).intervals
    return (ds.field("sid") >= interval.low) & (ds.field("sid") <= interval.high)


EXPERIMENTS: Experiments = {
    "lookup": lookup,
    "attach": first_row,
    "catching_up": catching_up,
    "changes": changes,
    "keeping": keeping,
    "tables": tables,
}


def history(*, quick: bool = False, only: Sequence[str] = ()) -> Report:
    """Run all experiments, or those in `only`; `quick` with about a tenth of the work."""
    chosen = choose(EXPERIMENTS, only)
    report = Report("history")
    spark = start_session(f"local[{os.cpu_count() or 2}]")
    with tempfile.TemporaryDirectory() as place:
        run_experiments(EXPERIMENTS, report, Lab(spark, quick, Path(place)), chosen)
    return report
