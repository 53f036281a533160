"""Kills at every commit point, in SQLite and PostgreSQL: each tuple changes its table once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import auroral as au
from benchmarks.postgres_server import PostgresServer
from tests.conformance.running import Crash
from tests.conformance.sparkless import make_engine

from .driving import TableRun, Way, way
from .networks import Batch, TableScenario, scenario

Fresh = Callable[[], str | None]


@pytest.fixture(params=["sqlite", "postgresql"])
def fresh(request: pytest.FixtureRequest) -> Fresh:
    """Makes addresses of stores without tables."""
    if request.param == "sqlite":
        return lambda: None
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.fresh


def tolls(store: str | None) -> TableScenario:
    """Accounts that are opened, charged and looked at, one of which fails."""
    net = au.Network("tolls")
    net.table("accounts", "vid int, balance int", key=["vid"], store=store)
    opened, paid = net.stream("opened", "vid int"), net.stream("paid", "vid int, toll int")
    charge = "UPDATE accounts SET balance = balance - :toll WHERE vid = :vid"
    net.output("charged", paid.update(charge, name="charge", vid="vid", twice="toll * 2"))
    look = "SELECT balance FROM accounts WHERE vid = :vid"
    net.output("left", paid.read(look, name="look", keep=["vid"]))
    insert = "INSERT INTO accounts VALUES (:vid, 100)"
    net.output("new", opened.update(insert, name="open", vid="vid"))
    batches = (
        Batch("opened", ((1,), (2,)), drain=False),
        Batch("paid", ((1, 5), (2, 7), (3, 1)), drain=True),
        Batch("opened", ((2,), (3,)), drain=False),  # the first of them fails
        Batch("paid", ((1, 1), (3, 2)), drain=False),
    )
    return TableScenario(net, batches, {})


def chain(store: str | None) -> TableScenario:
    """A balance that is read, changed in between, and written."""
    net = au.Network("chain")
    net.table("accounts", "vid int, balance int", key=["vid"], store=store)
    paid = net.stream("paid", "vid int, toll int")
    look = "SELECT balance FROM accounts WHERE vid = :vid"
    found = paid.read(look, name="look", keep=["vid", "toll"])
    rest = found.map(name="rest", keep=["vid"], rest="balance - toll")
    write = "UPDATE accounts SET balance = :rest WHERE vid = :vid"
    net.output("written", rest.update(write, name="write", vid="vid", rest="rest"))
    batches = (
        Batch("paid", ((1, 5), (1, 7)), drain=True),
        Batch("paid", ((2, 2),), drain=False),
    )
    return TableScenario(net, batches, {"accounts": [(1, 100), (2, 50)]})


@pytest.mark.parametrize("make", [tolls, chain])
def test_a_kill_at_any_point_changes_nothing(
    tmp_path: Path, fresh: Fresh, make: Callable[[str | None], TableScenario]
) -> None:
    made = make(fresh())
    whole = TableRun(make_engine, made, Way(3, frozenset()))
    whole.go(tmp_path / "whole", reasons=False)
    assert {"table-applied", "table-committed", "before-commit"} <= {*whole.points}
    # Databases see only some of the points; the others are the same for all.
    seen = [at for at, point in enumerate(whole.points) if point.startswith("table-")]
    for at in range(len(whole.points)) if made.network.tables["accounts"].store is None else seen:
        run = TableRun(make_engine, make(fresh()), Way(3, frozenset((at,))))
        run.go(tmp_path / str(at), reasons=False)


def test_boxes_that_take_turns_are_warned_of() -> None:
    assert tolls(None).network.check().warnings == ()
    (caution,) = chain(None).network.check().warnings
    assert str(caution).startswith("box write: uses accounts as look does")
    assert caution.code == "TABLE_TURNS"


@pytest.mark.parametrize("trains", [(1, 3), (3, 1), (2, 1000)], ids=str)
def test_a_step_that_was_forgotten_may_be_cut_otherwise(
    tmp_path: Path, fresh: Fresh, trains: tuple[int, int]
) -> None:
    """Power fails after the database was changed: the record of the step may be lost."""
    made = tolls(fresh())
    committed = [0]

    def fault(point: str) -> None:
        committed[0] += point == "table-committed"
        if committed[0] == 2:
            raise Crash(point)

    def run() -> None:
        with make_engine(made.network, state=tmp_path, train=trains[0], fault=fault) as engine:
            for at, batch in enumerate(made.batches[:3]):
                engine.enqueue(batch.stream, list(batch.rows), position=at)
            engine.drain()

    with pytest.raises(Crash):
        run()
    with sqlite3.connect(tmp_path / "manifest.db") as manifest:
        assert manifest.execute("DELETE FROM step").rowcount == 1
    manifest.close()
    TableRun(make_engine, made, Way(trains[1], frozenset())).go(tmp_path, reasons=False)


@pytest.mark.parametrize("seed", range(25))
def test_postgresql_gives_what_the_reference_gives(
    tmp_path: Path, postgres: PostgresServer, seed: int
) -> None:
    rng = Random(seed)
    run = TableRun(make_engine, scenario(rng, postgres.fresh()), way(rng))
    run.go(tmp_path, reasons=False)
