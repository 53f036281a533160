"""Static tables: from sqlite or given, the same after a restart, mistakes in words."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import auroral as au
from auroral.engine.ingest.tables import snapshot

if TYPE_CHECKING:
    from tests.conftest import MakeEngine

SCHEMA = "k int, label string"


def network(directory: Path, store: str | None = "sqlite:///names.db") -> au.Network:
    net = au.Network("tables", directory=directory)
    s = net.stream("s", "k int")
    names = net.table("names", SCHEMA, store=store)
    net.output("o", s.join(names, "left.k = right.k", name="named"))
    return net


def fill(directory: Path, rows: list[tuple[Any, ...]]) -> None:
    path = directory / "names.db"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE names (k, label)")
        database.executemany("INSERT INTO names VALUES (?, ?)", rows)
    database.close()


@pytest.mark.spark
def test_a_stream_meets_the_rows_of_sqlite_as_they_were_at_first(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    for label, added in (("one", [(1,), (2,), (None,)]), ("other", [(1,)])):
        fill(tmp_path, [(1, label), (1, "uno"), (3, "three"), (None, "none")])
        with make_engine(network(tmp_path), state=state) as engine:
            engine.enqueue("s", added)
            engine.drain()
            found = [row["label"] for row in engine.dequeue("o").to_pylist()]
            assert found == ["one", "uno"], "a restart sees what the first run saw"


@pytest.mark.parametrize(
    ("store", "rows", "code"),
    [
        (None, None, "NO_STORE"),
        ("sqlite:///names.db", None, "NO_STORE"),
        ("postgresql://127.0.0.1:1/names", None, "STORE_UNREACHABLE"),
        ("sqlite:///names.db", [("no number", "x")], "BAD_TABLE"),
    ],
)
def test_what_cannot_be_read_is_said(
    tmp_path: Path, store: str | None, rows: list[tuple[Any, ...]] | None, code: str
) -> None:
    if rows is not None:
        fill(tmp_path, rows)
    with pytest.raises(au.AuroralError, match=code):
        snapshot(network(tmp_path, store), "names", tmp_path, {}, sync=False)
    with pytest.raises(au.UsageError, match="UNKNOWN_TABLE"):
        au.Engine(network(tmp_path), tables={"nmaes": []})
