"""Statistics that a state directory keeps over restarts: of arrivals, queues and outputs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import Any

from auroral.qos.output_monitor import OutputSums, SecondSums
from auroral.scheduling.rates import KeptRate

STATISTICS_TABLES = """
CREATE TABLE IF NOT EXISTS arrival_rate (
    stream TEXT PRIMARY KEY, rate REAL NOT NULL, recent REAL NOT NULL);
CREATE TABLE IF NOT EXISTS queue_age (before INTEGER PRIMARY KEY, age_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS output_qos (
    output TEXT PRIMARY KEY, delivered REAL NOT NULL, shed TEXT NOT NULL, lost TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS qos_second (
    output TEXT NOT NULL, second INTEGER NOT NULL, tuples REAL NOT NULL, delay REAL NOT NULL,
    worth REAL NOT NULL, good REAL NOT NULL, shed REAL NOT NULL, valued REAL NOT NULL,
    value_worth REAL NOT NULL, PRIMARY KEY (output, second)) WITHOUT ROWID;
"""
"""Tables without which a state directory is sound: those of older versions lack them."""
_LOOP_S = "SELECT value FROM meta WHERE key = 'loop_s'"
_SUMS = [each.name for each in fields(SecondSums)][1:]


@dataclass(frozen=True)
class KeptStatistics:
    """What is known of streams, queues and outputs at a time; seconds are of the wall clock."""

    rates: Mapping[str, KeptRate] = field(default_factory=dict)
    """By stream."""
    ages: Sequence[tuple[int, float]] = ()
    """For how long what arrived before a moment had waited; see `ArrivalTimes`."""
    outputs: Mapping[str, tuple[OutputSums, Sequence[SecondSums]]] = field(default_factory=dict)
    """By output its sums and seconds; when written, those that have changed."""
    gone: Sequence[str] = ()
    """Outputs that there are no more."""
    forget_before: int = 0
    """Seconds of outputs before this one are forgotten."""
    loop_s: float | None = None
    """Seconds that the loop spends on each step, besides its work."""


def write_statistics(db: sqlite3.Connection, statistics: KeptStatistics) -> None:
    """Write what has changed, within a transaction."""
    rates = [(stream, *astuple(rate)) for stream, rate in statistics.rates.items()]
    db.executemany("INSERT OR REPLACE INTO arrival_rate VALUES (?, ?, ?)", rates)
    if statistics.loop_s is not None:
        db.execute("INSERT OR REPLACE INTO meta VALUES ('loop_s', ?)", (str(statistics.loop_s),))
    db.execute("DELETE FROM queue_age")
    db.executemany("INSERT INTO queue_age VALUES (?, ?)", statistics.ages)
    for output in statistics.gone:
        db.execute("DELETE FROM output_qos WHERE output = ?", (output,))
        db.execute("DELETE FROM qos_second WHERE output = ?", (output,))
    for output, (sums, seconds) in statistics.outputs.items():
        db.execute(
            "INSERT OR REPLACE INTO output_qos VALUES (?, ?, ?, ?)",
            (output, sums.delivered, json.dumps(sums.shed), json.dumps(sums.lost)),
        )
        db.execute(
            "DELETE FROM qos_second WHERE output = ? AND second < ?",
            (output, statistics.forget_before),
        )
        db.executemany(
            f"INSERT OR REPLACE INTO qos_second VALUES ({', '.join('?' * (len(_SUMS) + 2))})",
            [(output, *astuple(one)) for one in seconds],
        )


def read_statistics(rows: Callable[[str], list[Any]]) -> KeptStatistics:
    """What was written last; `rows` answers SQL."""
    tables = {name for (name,) in rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "qos_second" not in tables:
        return KeptStatistics()
    seconds: dict[str, list[SecondSums]] = {}
    names = ", ".join(_SUMS)
    for output, *sums in rows(f"SELECT output, second, {names} FROM qos_second ORDER BY second"):
        seconds.setdefault(output, []).append(SecondSums(*sums))
    loop_s = next((float(one) for (one,) in rows(_LOOP_S)), None)
    found = rows("SELECT output, delivered, shed, lost FROM output_qos")
    return KeptStatistics(
        {s: KeptRate(*one) for s, *one in rows("SELECT stream, rate, recent FROM arrival_rate")},
        rows("SELECT before, age_s FROM queue_age ORDER BY before"),
        {
            output: (
                OutputSums(delivered, json.loads(shed), json.loads(lost)),
                seconds.get(output, []),
            )
            for output, delivered, shed, lost in found
        },
        loop_s=loop_s,
    )
