"""Tables of a running engine: databases that go away, change, or were there before."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

import auroral as au
from auroral.engine import Engine
from auroral.tables import postgres as postgres_module
from auroral.tables.store import StoreUnavailableError
from benchmarks.postgres_server import PostgresServer
from tests.conformance.running import Crash
from tests.conformance.sparkless import make_engine

PAY = "UPDATE accounts SET balance = balance - :toll WHERE vid = :vid"
LOOK = "SELECT balance FROM accounts WHERE vid = :vid"


def network(store: str | None = None, directory: Path | None = None) -> au.Network:
    """Accounts that are charged, and beside them boxes that need no table."""
    net = au.Network("tolls", directory=directory)
    net.table("accounts", "vid int, balance int", key=["vid"], store=store)
    paid = net.stream("paid", "vid int, toll int")
    net.output("charged", paid.update(PAY, name="charge", vid="vid"))
    net.output("large", paid.filter("toll > 5", name="large"))
    return net


FIRST = {"accounts": [(1, 100), (2, 50)]}


def balances(engine: Engine) -> dict[int, int]:
    return {row["vid"]: row["balance"] for row in engine.table("accounts").to_pylist()}


def until(engine: Engine, holds: Any, timeout_s: float = 30) -> None:
    """Wait until something holds that the engine brings about."""
    waited = threading.Event()
    for _ in range(int(timeout_s / 0.02)):
        if holds():
            return
        waited.wait(0.02)
    raise AssertionError(engine.stats()["tables"])


def test_a_table_without_a_store_is_in_the_state_directory(tmp_path: Path) -> None:
    for left in (95, 90):
        with make_engine(network(), state=tmp_path, tables=FIRST) as engine:
            engine.enqueue("paid", [(1, 5)])
            engine.drain()
            assert balances(engine) == {1: left, 2: 50}
            stats = engine.stats()
    assert (tmp_path / "tables.db").stat().st_mode & 0o077 == 0
    assert stats["tables"] == {
        "accounts": {
            "store": str(tmp_path / "tables.db"),
            "reads": 0,
            "updates": 2,
            "waiting": None,
        }
    }
    assert "charge@write" not in {*stats["boxes"], *stats["arcs"]}


def test_the_updates_of_another_run_stay_in_a_store_of_ones_own(tmp_path: Path) -> None:
    net = network("sqlite:///accounts.db", tmp_path)
    for left in (95, 90):
        with make_engine(net, tables=FIRST) as engine:
            engine.enqueue("paid", [(1, 5)])
            engine.drain()
            assert balances(engine) == {1: left, 2: 50}
    with sqlite3.connect(tmp_path / "accounts.db") as database:
        assert database.execute("SELECT count(*) FROM _auroral_steps").fetchall() == [(0,)]
    database.close()


def test_boxes_that_nobody_reads_change_tables_all_the_same(tmp_path: Path) -> None:
    net = au.Network("silent")
    net.table("seen", "vid int, times int", key=["vid"])
    count = "INSERT INTO seen VALUES (:vid, 1) ON CONFLICT (vid) DO UPDATE SET times = times + 1"
    net.stream("cars", "vid int").filter("vid > 0", name="real").update(count, name="c", vid="vid")
    with make_engine(net) as engine:
        engine.enqueue("cars", [(7,), (0,), (7,)])
        engine.drain()
        assert engine.table("seen").to_pylist() == [{"vid": 7, "times": 2}]


@pytest.mark.parametrize("background", [False, True])
def test_a_locked_database_is_waited_for(tmp_path: Path, background: bool) -> None:
    net = network("sqlite:///accounts.db", tmp_path)
    with make_engine(net, tables=FIRST, background=background) as engine:
        engine._context.tables._ensured["accounts"]._connected().execute(  # type: ignore[attr-defined]
            "PRAGMA busy_timeout = 10"
        )
        other = sqlite3.connect(tmp_path / "accounts.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        engine.enqueue("paid", [(1, 5), (2, 7)])
        with pytest.raises(au.RunError, match="TIMEOUT"):
            engine.drain(timeout_s=0.3)
        assert "database is locked" in engine.stats()["tables"]["accounts"]["waiting"]
        assert engine.dequeue("large").to_pylist() == [{"vid": 2, "toll": 7}], "others go on"
        assert engine.dequeue("charged").num_rows == 0
        other.execute("ROLLBACK")
        other.close()
        engine.drain(timeout_s=30)
        assert engine.stats()["tables"]["accounts"]["waiting"] is None
        assert balances(engine) == {1: 95, 2: 43}
        assert engine.dequeue("charged").num_rows == 2


def test_a_file_that_goes_away_and_comes_back_is_waited_for(tmp_path: Path) -> None:
    net = network("sqlite:///accounts.db", tmp_path)
    aside = tmp_path / "aside"
    aside.mkdir()
    with make_engine(net, tables=FIRST) as engine:
        engine.enqueue("paid", [(1, 5)])
        engine.drain()
        for file in tmp_path.glob("accounts.db*"):
            shutil.move(file, aside)
        engine.enqueue("paid", [(1, 5)])
        with pytest.raises(au.RunError, match="TIMEOUT"):
            engine.drain(timeout_s=0.2)
        assert "there is no database" in engine.stats()["tables"]["accounts"]["waiting"]
        for file in aside.iterdir():
            shutil.move(file, tmp_path)
        engine.drain(timeout_s=30)
        assert balances(engine) == {1: 90, 2: 50}


def test_a_server_that_goes_away_and_comes_back_is_waited_for(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    net = network(postgres.fresh())
    with make_engine(net, state=tmp_path, tables=FIRST, background=True) as engine:
        engine.enqueue("paid", [(1, 5)])
        engine.drain(timeout_s=30)
        postgres.stop()
        try:
            engine.enqueue("paid", [(1, 5), (2, 7)])
            until(engine, lambda: engine.stats()["tables"]["accounts"]["waiting"])
            until(engine, lambda: engine.stats()["outputs"]["large"]["waiting"] == 1)
        finally:
            postgres.start()
        engine.drain(timeout_s=60)
        assert balances(engine) == {1: 90, 2: 43}
        assert engine.dequeue("charged").num_rows == 3
        postgres.stop()
        engine.enqueue("paid", [(2, 1)])
        until(engine, lambda: engine.stats()["tables"]["accounts"]["waiting"])
    postgres.start()  # the engine ended without it, and goes on from there
    with make_engine(net, state=tmp_path) as engine:
        engine.drain(timeout_s=60)
        assert balances(engine) == {1: 90, 2: 42}


def test_a_commit_of_which_nobody_knows_is_not_repeated(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """The connection breaks just after the database has committed."""
    net = network(postgres.fresh())
    broken: list[str] = []

    def fault(point: str) -> None:
        if point == "table-committed" and not broken:
            broken.append(point)
            raise StoreUnavailableError("the connection was lost")

    with make_engine(net, state=tmp_path, tables=FIRST, fault=fault) as engine:
        engine.enqueue("paid", [(1, 5)])
        engine.drain(timeout_s=30)
        assert broken
        assert balances(engine) == {1: 95, 2: 50}
        assert engine.dequeue("charged").num_rows == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_tuple_that_fails_is_a_dead_letter(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    store = None
    if kind == "postgresql":
        store = request.getfixturevalue("postgres").fresh()
    net = au.Network("failing")
    net.table("t", "k int, n int", key=["k"], store=store)
    stream = net.stream("s", "k int, n int")
    net.output("put", stream.update("INSERT INTO t VALUES (:k, :n)", name="put", k="k"))
    quotient = "SELECT 100 / n AS q FROM t WHERE k = :k"
    net.output("divided", stream.read(quotient, name="quotient", keep=["k"]))
    rows = [(1, 0), (1, 5), (None, 1), (2, 2), (3, None)]
    with make_engine(net) as engine:
        engine.enqueue("s", rows)
        engine.drain()
        assert engine.dequeue("put").to_pylist() == [{"k": 1}, {"k": 2}, {"k": 3}]
        letters = [json.loads(line) for line in engine.dead_letters.read_text().splitlines()]
        failed = [(d["source"], d["place"], json.loads(d["row"])) for d in letters]
        ours = [("put", "table", {"k": k, "n": n}) for k, n in [(1, 5), (None, 1)]]
        assert [one for one in failed if one[0] == "put"] == ours
        assert engine.stats()["boxes"]["put"]["dead"] == 2
        found = engine.dequeue("divided").to_pylist()
        assert [row["k"] for row in found if row["q"] is not None] == [2]
        assert engine.table("t").num_rows == 3


def test_a_table_that_changes_under_us_is_an_error(tmp_path: Path) -> None:
    net = network("sqlite:///accounts.db", tmp_path)
    with make_engine(net, tables=FIRST) as engine:
        engine.enqueue("paid", [(1, 5)])
        engine.drain()
        with sqlite3.connect(tmp_path / "accounts.db") as other:
            other.execute("ALTER TABLE accounts RENAME COLUMN balance TO money")
        other.close()
        engine.enqueue("paid", [(1, 5)])
        with pytest.raises(au.RunError, match=r"TABLE_CHANGED.*no such column"):
            engine.drain()


def test_a_table_of_postgresql_that_changes_under_us_is_an_error(postgres: PostgresServer) -> None:
    address = postgres.fresh()
    net = network(address)
    schema = address.rpartition("%3D")[2]
    with make_engine(net, tables=FIRST) as engine:
        engine.enqueue("paid", [(1, 5)])
        engine.drain()
        postgres.execute(f"ALTER TABLE {schema}.accounts RENAME COLUMN balance TO money")
        engine.enqueue("paid", [(1, 5)])
        with pytest.raises(au.RunError, match=r"TABLE_CHANGED.*balance"):
            engine.drain()


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("vid INTEGER PRIMARY KEY, balance INT, more TEXT", None),
        ("balance, vid", None),
        ("vid INT, balance TEXT", "vid INT, balance TEXT; declared are vid int, balance int"),
        ("vid INT", "has the columns vid INT; declared are"),
    ],
)
def test_a_table_that_was_there_must_fit(tmp_path: Path, columns: str, says: str | None) -> None:
    with sqlite3.connect(tmp_path / "accounts.db") as database:
        database.execute(f"CREATE TABLE accounts ({columns})")
        if says is None:
            database.execute("INSERT INTO accounts (vid, balance) VALUES (1, 7)")
    database.close()
    net = network("sqlite:///accounts.db", tmp_path)
    if says is not None:
        with pytest.raises(au.UsageError, match="BAD_TABLE") as refused, make_engine(net):
            pass
        assert says in str(refused.value)
        return
    with make_engine(net, tables=FIRST) as engine:
        engine.enqueue("paid", [(1, 5)])
        engine.drain()
        assert balances(engine) == {1: 2}, "rows are given to new tables only"


def test_a_table_of_postgresql_that_was_there_must_fit(postgres: PostgresServer) -> None:
    address = postgres.fresh()
    schema = address.rpartition("%3D")[2]
    postgres.execute(f"CREATE TABLE {schema}.accounts (vid integer, balance text)")
    net = network(address)
    with pytest.raises(au.UsageError, match=r"BAD_TABLE.*vid integer, balance text; declared"):
        make_engine(net).__enter__()


def test_a_database_that_does_not_accept_a_statement_says_so(postgres: PostgresServer) -> None:
    net = au.Network("strict")
    net.table("t", "k int, s string", key=["k"], store=postgres.fresh())
    stream = net.stream("s", "k int")
    net.output("o", stream.update("UPDATE t SET s = 1 + s WHERE k = :k", name="u", k="k"))
    with pytest.raises(au.NetworkError, match=r"BAD_STATEMENT: box u.*PostgreSQL does not accept"):
        make_engine(net).__enter__()


def test_a_server_that_is_not_there_is_an_error_at_the_start() -> None:
    net = network("postgresql://me:secret@127.0.0.1:1/db")
    with pytest.raises(au.RunError, match="STORE_UNREACHABLE") as refused:
        make_engine(net).__enter__()
    assert "secret" not in str(refused.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(postgres_module, "import_module", missing)
    with pytest.raises(au.UsageError, match=r"MISSING_PACKAGE.*auroral\[postgresql\]"):
        make_engine(network("postgresql://host/db")).__enter__()


def test_tables_of_two_stores_cannot_meet(tmp_path: Path) -> None:
    net = au.Network("two", directory=tmp_path)
    net.table("a", "k int", store="sqlite:///a.db")
    net.table("b", "k int", store="sqlite:///b.db")
    stream = net.stream("s", "k int")
    net.output("o", stream.read("SELECT a.k AS k FROM a JOIN b ON a.k = b.k", name="both"))
    with pytest.raises(au.UsageError, match="STORES_DIFFER: box both"):
        make_engine(net).__enter__()


def test_an_older_database_or_directory_is_noticed(tmp_path: Path) -> None:
    net = network("sqlite:///accounts.db", tmp_path)
    state, saved = tmp_path / "state", tmp_path / "saved"

    def pay() -> None:
        with make_engine(net, state=state, tables=FIRST) as engine:
            engine.enqueue("paid", [(1, 5)])
            engine.drain()

    def keep(name: str) -> None:
        shutil.copytree(state, saved / name / "state")
        for file in tmp_path.glob("accounts.db*"):
            shutil.copy(file, saved / name)

    def restore(name: str, *, both: bool, database: bool) -> None:
        for file in tmp_path.glob("accounts.db*"):
            file.unlink()
        shutil.rmtree(state)
        shutil.copytree(saved / (name if both or not database else "new") / "state", state)
        for file in (saved / (name if both or database else "new")).glob("accounts.db*"):
            shutil.copy(file, tmp_path)

    pay()
    keep("old")
    pay()
    pay()
    keep("new")
    restore("old", both=False, database=True)
    with pytest.raises(au.StateError, match="TABLE_BEHIND"):
        pay()
    restore("old", both=False, database=False)
    with pytest.raises(au.StateError, match="STATE_BEHIND"):
        pay()
    restore("old", both=True, database=True)
    pay()


def test_the_end_does_not_wait_for_a_database(tmp_path: Path) -> None:
    net = network("sqlite:///accounts.db", tmp_path)
    state = tmp_path / "state"
    with make_engine(net, state=state, tables=FIRST, background=True) as engine:
        for file in tmp_path.glob("accounts.db*"):
            shutil.move(file, tmp_path / f"aside.{file.name}")
        engine.enqueue("paid", [(1, 5)])
        until(engine, lambda: engine.stats()["tables"]["accounts"]["waiting"])
    for file in tmp_path.glob("aside.*"):
        shutil.move(file, tmp_path / file.name.removeprefix("aside."))
    with make_engine(net, state=state) as engine:
        engine.drain()
        assert balances(engine) == {1: 95, 2: 50}


def test_late_tuples_of_an_ordered_update_are_offered(tmp_path: Path) -> None:
    net = au.Network("ordered")
    net.table("latest", "k int, at int", key=["k"])
    stream = net.stream("s", "k int, at int", progress=au.Delayed("at", 2))
    put = "INSERT INTO latest VALUES (:k, :at) ON CONFLICT (k) DO UPDATE SET at = excluded.at"
    put_arc = stream.update(put, order={"on": "at"}, name="put", at="at")
    net.output("put", put_arc)
    net.output("late", put_arc.late)
    rows = [(1, 5), (1, 3), (1, 9), (1, 1)]
    reference = au.testing.run(net, {"s": rows})
    with make_engine(net, bind=[]) as engine:
        engine.enqueue("s", rows)
        engine.finish()
        assert engine.dequeue("put").to_pylist() == reference["put"]
        assert engine.dequeue("late").to_pylist() == [{"k": 1, "at": 1}] == reference["late"]
        assert engine.table("latest").to_pylist() == [{"k": 1, "at": 9}]
        assert engine.stats()["boxes"]["put"]["late"] == {"late": 1}


def test_a_join_with_a_table_that_changes_sees_it_as_it_is(tmp_path: Path) -> None:
    net = au.Network("live")
    names = net.table("names", "k int, label string", key=["k"])
    s, renamed = net.stream("s", "k int"), net.stream("renamed", "k int, label string")
    put = (
        "INSERT INTO names VALUES (:k, :label) ON CONFLICT (k) DO UPDATE SET label = excluded.label"
    )
    renamed.update(put, name="put", k="k")
    net.output("o", s.join(names, "left.k = right.k", name="named"))
    net.output("t", names.join(s, "left.k < right.k", name="less"))
    with make_engine(net) as engine:
        for stream, row in (
            ("s", (1,)),
            ("renamed", (1, "one")),
            ("s", (1,)),
            ("renamed", (1, "uno")),
            ("s", (1,)),
            ("s", (2,)),
        ):
            engine.enqueue(stream, [row])
        engine.drain()
        found = engine.dequeue("o").to_pylist()
        assert [tuple(row.values()) for row in found] == [(1, 1, "one"), (1, 1, "uno")]
        found = engine.dequeue("t").to_pylist()
        assert [tuple(row.items()) for row in found] == [
            (("k", 1), ("label", "uno"), ("right_k", 2))
        ]
    net.stream("x", "k int").join(names, "reverse(right.label) = 'x'", name="odd")
    with pytest.raises(au.NetworkError, match="LIVE_JOIN"):
        make_engine(net).__enter__()


def test_a_query_cannot_join_a_table_that_changes() -> None:
    net = network()
    net.query("rich", "SELECT paid.vid FROM paid, accounts WHERE paid.vid = accounts.vid")
    with pytest.raises(au.NetworkError, match=r"LIVE_JOIN: query rich.*charge changes it"):
        net.check()
    del net.queries["rich"]
    with make_engine(net) as engine, pytest.raises(au.NetworkError, match="LIVE_JOIN"):
        engine.modify(
            add={"rich": "SELECT paid.vid FROM paid, accounts WHERE paid.vid = accounts.vid"}
        )


def test_a_crash_leaves_the_database_to_the_next_engine(tmp_path: Path) -> None:
    net = network("sqlite:///accounts.db", tmp_path)

    def fault(point: str) -> None:
        if point == "table-applied":
            raise Crash(point)

    def run() -> None:
        with make_engine(net, state=tmp_path / "state", tables=FIRST, fault=fault) as engine:
            engine.enqueue("paid", [(1, 5)])
            engine.drain()

    with pytest.raises(Crash):
        run()
    with make_engine(net, state=tmp_path / "state") as engine:
        engine.drain()
        assert balances(engine) == {1: 95, 2: 50}
