"""Tables: how many tuples a second read and update them, in SQLite and PostgreSQL.

A table of 100,000 accounts with a key; each tuple reads or changes the row of one key at random, in
trains of 20,000 tuples. A step ends when the database and the state directory have committed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import auroral as au
from auroral.spark.session.session import start_session
from benchmarks.lab import Lab
from benchmarks.postgres_server import PostgresServer, binaries
from benchmarks.report import Report

ACCOUNTS = 100_000
TRAIN = 20_000
BARS = {
    ("sqlite", "update"): 20_000,
    ("sqlite", "read"): 50_000,
    ("postgresql", "update"): 10_000,
    ("postgresql", "read"): 25_000,
}
"""Tuples a second, at least."""
_PAY = "UPDATE accounts SET balance = balance - :toll WHERE vid = :vid"
_LOOK = "SELECT balance FROM accounts WHERE vid = :vid"


def tables(report: Report, lab: Lab) -> None:
    """Measure all; without PostgreSQL, SQLite alone."""
    section = report.section(
        f"Tables of {ACCOUNTS:,} rows, trains of {TRAIN:,}", "store", "box", "tuples_per_s"
    )
    with _stores() as stores:
        for store, fresh in stores.items():
            for kind in ("update", "read", "update and read"):
                lab.say(f"tables: {kind} in {store}")
                rate = _rate(lab, fresh(), kind)
                section.rows.append((store, kind, rate))
                if (store, kind) in BARS:
                    name = f"{kind} in {store}: tuples a second"
                    report.bar(name, rate, least=BARS[store, kind])


def network(store: str | None, kind: str) -> au.Network:
    """Boxes that update, read, or both; results are only kept, not taken."""
    net = au.Network("tables")
    net.table("accounts", "vid int, balance double", key=["vid"], store=store)
    paid = net.stream("paid", "vid int, toll double")
    if "update" in kind:
        net.output("paid_out", paid.update(_PAY, name="pay", vid="vid"))
    if "read" in kind:
        net.output("looked_up", paid.read(_LOOK, keep=["vid"], name="look"))
    return net


def _rate(lab: Lab, store: str | None, kind: str) -> float:
    """Tuples a second, behind the first two trains, in which Spark compiles."""
    trains = lab.steps(10, 3)
    tuples = [_tuples(number) for number in range(trains + 2)]
    net = network(store, kind)
    accounts = pa.table({"vid": np.arange(ACCOUNTS, dtype="int32"), "balance": np.zeros(ACCOUNTS)})
    state = Path(tempfile.mkdtemp(dir=lab.place))
    options: dict[str, Any] = {"spark": lab.spark, "train": TRAIN, "background": False}
    with au.Engine(net, state=state, tables={"accounts": accounts}, **options) as engine:
        _feed(engine, tuples[:2])
        started = time.perf_counter()
        _feed(engine, tuples[2:])
        seconds = time.perf_counter() - started
        _require_all(engine, kind, len(tuples))
    return trains * TRAIN / seconds


def _feed(engine: au.Engine, trains: Sequence[pa.Table]) -> None:
    for tuples in trains:
        engine.enqueue("paid", tuples)
        engine.drain()


def _require_all(engine: au.Engine, kind: str, trains: int) -> None:
    """Every tuple has changed its row once."""
    if "update" in kind:
        charged = -sum(engine.table("accounts")["balance"].to_pylist())
        assert charged == trains * TRAIN, charged


def _tuples(number: int) -> pa.Table:
    random = np.random.default_rng(number)
    return pa.table(
        {"vid": random.integers(0, ACCOUNTS, TRAIN, dtype="int32"), "toll": np.ones(TRAIN)}
    )


@contextmanager
def _stores() -> Iterator[dict[str, Callable[[], str | None]]]:
    """What there is, each with an address of no tables: SQLite, and a PostgreSQL of our own."""
    programs = binaries()
    if programs is None:
        yield {"sqlite": lambda: None}
        return
    directory = Path(tempfile.mkdtemp(prefix="auroral-postgres-"))
    try:
        server = PostgresServer(directory, programs, power=True)
        server.start()
        try:
            yield {"sqlite": lambda: None, "postgresql": server.fresh}
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main() -> None:
    """Run this part alone."""
    report = Report("tables")
    with tempfile.TemporaryDirectory() as place:
        tables(report, Lab(start_session("local[2]"), "--quick" in sys.argv, Path(place)))
    sys.stdout.write(report.text() + "\n")


if __name__ == "__main__":
    main()
