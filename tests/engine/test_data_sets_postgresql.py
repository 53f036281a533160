"""A stored data set in a real PostgreSQL."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import auroral as au
from tests.conformance.sparkless import make_engine

pytest.importorskip("psycopg", reason="psycopg is not installed")
postgres_server: Any = pytest.importorskip(
    "benchmarks.postgres_server", reason="there is no helper that starts PostgreSQL"
)
TYPES = """k integer, name text, ok boolean, price numeric(8,2), ratio double precision,
day date, at timestamptz, more bytea"""
SCHEMA = """k int, name string, ok boolean, price decimal(8,2), ratio double, day date,
at timestamp"""


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    programs = postgres_server.binaries()
    if programs is None:
        pytest.skip("there is no PostgreSQL: run scripts/postgres.sh")
    # Another user runs the server, who may not look into pytest's directories.
    with tempfile.TemporaryDirectory(prefix="auroral-postgres-") as place:
        running = postgres_server.PostgresServer(Path(place), programs)
        running.start()
        try:
            yield running
        finally:
            running.stop()


def network(tmp_path: Path, store: str, schema: str = SCHEMA) -> au.Network:
    net = au.Network("shop", directory=tmp_path)
    ticks = net.stream("ticks", "k int")
    items = net.connection_point("items", store=store, schema=schema, key="k")
    net.output("all", items)
    net.output("named", ticks.join(items, "left.k = right.k", name="j"))
    return net


def test_every_type_is_read_exactly(server: Any, tmp_path: Path) -> None:
    server.execute(f'CREATE TABLE "the items" ({TYPES})')
    server.execute(
        "INSERT INTO \"the items\" VALUES (2, 'two; DROP TABLE x', true, 12.34, 'NaN',"
        " '2024-02-29', '2024-02-29 12:00+01', 'x'), (1, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    with make_engine(network(tmp_path, f"{server.url}#the items")) as engine:
        engine.enqueue("ticks", [(2,), (3,)])
        engine.drain()
        one, two = engine.dequeue("all").to_pylist()
        assert list(one.values()) == [1, *[None] * 6]
        assert two["name"] == "two; DROP TABLE x"
        assert (two["ok"], str(two["price"]), str(two["day"])) == (True, "12.34", "2024-02-29")
        assert two["ratio"] != two["ratio"]
        assert two["at"].isoformat() == "2024-02-29T11:00:00+00:00"
        (found,) = engine.dequeue("named").to_pylist()
        assert (found["k"], found["name"]) == (2, "two; DROP TABLE x")


def test_many_rows_come_in_order_of_the_key(server: Any, tmp_path: Path) -> None:
    server.execute("CREATE SCHEMA archive")
    server.execute(
        "CREATE TABLE archive.items AS"
        " SELECT mod(n * 7919, 120011) AS k, n::text AS name"
        " FROM generate_series(1, 120000) n"
    )
    store = f"{server.url}#archive.items"
    with make_engine(network(tmp_path, store, "k int, name string")) as engine:
        engine.drain()
        keys = engine.dequeue("all")["k"].to_pylist()
        assert keys == sorted(n * 7919 % 120_011 for n in range(1, 120_001))


@pytest.mark.parametrize(
    ("table", "schema", "code"),
    [
        ("nothing", "k int", "NO_DATA_SET: .*there is no table nothing"),
        ('items"; DROP TABLE items; --', "k int", "NO_DATA_SET"),
        ("here", "k int, cost int", "BAD_DATA_SET.*no column cost"),
        ("here", "k boolean", "BAD_DATA_SET"),
    ],
)
def test_what_does_not_fit_is_told(
    server: Any, tmp_path: Path, table: str, schema: str, code: str
) -> None:
    server.execute("CREATE TABLE IF NOT EXISTS here (k integer)")
    server.execute("INSERT INTO here VALUES (5)")
    net = au.Network("shop", directory=tmp_path)
    net.output(
        "all", net.connection_point("items", store=f"{server.url}#{table}", schema=schema, key="k")
    )
    with pytest.raises(au.AuroralError, match=code), make_engine(net):
        pass
