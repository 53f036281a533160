"""Stored data sets (dangling connection points): pushed in order of the key, or looked up."""

from __future__ import annotations

import math
import sqlite3
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auroral as au
from auroral.engine.ingest.data_sets import StoredDataSets, wanted_rows
from auroral.history import stored
from auroral.history.stored import SortedDataSet, probed_rows, write_sorted
from auroral.network.data_sets import with_data_sets
from tests.conformance.sparkless import make_engine

SCHEMA = "sym string, price double"
ROWS = [("b", 2.0), ("a", 1.0), ("c", 3.0), ("b", 2.5), (None, 9.0)]
IN_ORDER = [("a", 1.0), ("b", 2.0), ("b", 2.5), ("c", 3.0), (None, 9.0)]


def written(directory: Path, kind: str) -> str:
    """The rows in a store of some kind; its address."""
    table = pa.table({"sym": [s for s, _ in ROWS], "price": [p for _, p in ROWS]})
    table = table.append_column("more", pa.array(range(len(ROWS))))
    if kind == "csv":
        pacsv.write_csv(table, directory / "prices.csv")
        return "csv:prices.csv"
    if kind == "parquet":
        pq.write_table(table, directory / "prices.parquet")
        return "parquet:prices.parquet"
    if kind == "directory":
        (directory / "prices").mkdir()
        pq.write_table(table, directory / "prices" / "0.parquet")
        return "parquet:prices/"
    with sqlite3.connect(directory / "shop.db") as database:
        database.execute('CREATE TABLE "the prices" (sym TEXT, price REAL, more INTEGER)')
        rows = [tuple(row.values()) for row in table.to_pylist()]
        database.executemany('INSERT INTO "the prices" VALUES (?, ?, ?)', rows)
    database.close()
    return "sqlite:///shop.db#the prices"


def network(directory: Path, store: str, schema: str = SCHEMA, key: str = "sym") -> au.Network:
    net = au.Network("shop", directory=directory)
    net.stream("ticks", "sym string, qty int")
    net.connection_point("prices", store=store, schema=schema, key=key)
    return net


def found(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("kind", ["csv", "parquet", "directory", "sqlite"])
def test_a_data_set_is_pushed_in_order_of_its_key(tmp_path: Path, kind: str) -> None:
    net = network(tmp_path, written(tmp_path, kind))
    net.output("all", "prices")
    net.output("dear", net.box("filter", "dear_box", input="prices", where="price >= 2.5"))
    with make_engine(net) as engine:
        engine.drain()
        assert found(engine.dequeue("all")) == IN_ORDER
        assert found(engine.dequeue("dear")) == [("b", 2.5), ("c", 3.0), (None, 9.0)]
        assert engine.stats()["streams"]["prices"]["in"] == 5
        stats = engine.stats()["connection_points"]["prices"]
        assert (stats["rows"], stats["distinct_keys"]) == (5, 3)
        with pytest.raises(au.UsageError, match="STORED_DATA_SET"):
            engine.enqueue("prices", [("d", 1.0)])


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_a_join_without_a_window_looks_it_up(tmp_path: Path, kind: str) -> None:
    net = network(tmp_path, written(tmp_path, kind))
    net.output(
        "priced", net.box("join", "j", inputs=["ticks", "prices"], on="left.sym = right.sym")
    )
    with make_engine(net) as engine:
        engine.enqueue("ticks", [("b", 1), (None, 2), ("x", 3), ("a", 4)])
        engine.drain()
        assert found(engine.dequeue("priced")) == [
            ("b", 1, "b", 2.0),
            ("b", 1, "b", 2.5),
            ("a", 4, "a", 1.0),
        ]
        assert engine.stats()["streams"]["prices"]["in"] == 0, "nobody reads it as a stream"


def test_progress_on_the_key_ends_with_the_data_set(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("at,v\n20,3\n5,1\n12,2\n")
    net = au.Network("archive", directory=tmp_path)
    live = net.stream("live", "at bigint, v int", progress=au.Ordered("at"))
    old = net.connection_point("old", store="csv:old.csv", schema="at bigint, v int", key="at")
    both = net.union(old, live, name="both")
    window = au.Window(size=10)
    net.output("sums", both.aggregate(order=au.Order("at"), window=window, total="sum(v)"))
    net.output(
        "joined", old.join(live, "true", left=au.Order("at"), right=au.Order("at"), within=1)
    )
    with make_engine(net) as engine:
        engine.enqueue("live", [(21, 10), (35, 20)])
        engine.drain()
        assert found(engine.dequeue("sums")) == [(0, 1), (10, 2), (20, 13)]
        assert found(engine.dequeue("joined")) == [(20, 3, 21, 10)]


def test_a_filter_on_the_key_reads_little(tmp_path: Path) -> None:
    count = 300_000
    keys = np.random.default_rng(1).permutation(count)
    pq.write_table(pa.table({"k": keys, "v": keys * 2}), tmp_path / "big.parquet")
    net = au.Network("big", directory=tmp_path)
    big = net.connection_point(
        "big", store="parquet:big.parquet", schema="k bigint, v bigint", key="k"
    )
    net.output("few", big.filter("k BETWEEN 10 AND 12", name="few_box"))
    net.output("one", big.filter("k = 250000 AND v > 0", name="one_box"))
    with make_engine(net) as engine:
        engine.drain()
        assert found(engine.dequeue("few")) == [(k, 2 * k) for k in (10, 11, 12)]
        assert found(engine.dequeue("one")) == [(250_000, 500_000)]
        stats = engine.stats()
        assert stats["streams"]["big"]["in"] == 4
        assert (
            "a lookup reads 16,384 of 300,000 rows" in stats["connection_points"]["big"]["pushed"]
        )


@pytest.mark.parametrize(
    ("make", "demanded"),
    [
        (lambda net: net.box("filter", "f", input="prices", where="sym = 'a'"), ("a",)),
        (lambda net: net.box("filter", "f", input="prices", where="price > 1"), None),
        (lambda net: net.box("filter", "f", input="prices", routes={"x": "sym = 'a'"}), None),
        (lambda net: net.box("map", "f", input="prices", keep="*"), None),
    ],
)
def test_what_readers_demand_of_a_key(tmp_path: Path, make: Any, demanded: Any) -> None:
    net = network(tmp_path, "csv:prices.csv")
    assert wanted_rows(net.check(), "prices") == (False, None)
    make(net)
    wanted, predicate = wanted_rows(net.check(), "prices")
    assert wanted
    assert (predicate and predicate.points) == demanded
    net.output("rest", "f.rest" if net.boxes["f"].kind == "filter" else "prices")
    assert wanted_rows(net.check(), "prices") == (True, None), "all rows are needed"


def test_a_restart_sees_what_the_first_run_saw(tmp_path: Path) -> None:
    class Crash(BaseException):
        pass

    store = written(tmp_path, "csv")
    net = network(tmp_path, store)
    net.output("all", "prices")
    net.output(
        "priced", net.box("join", "j", inputs=["ticks", "prices"], on="left.sym = right.sym")
    )
    state = tmp_path / "state"
    points = Counter[str]()
    armed = [0]

    def fault(point: str) -> None:
        points[point] += 1
        if point == "before-commit" and points[point] == armed[0]:
            raise Crash

    crashes = 0
    for commit in range(1, 12):
        points.clear()
        armed[0] = commit
        try:
            with make_engine(net, state=state, fault=fault) as engine:
                engine.drain()
        except Crash:
            crashes += 1
    assert crashes > 3
    (tmp_path / "prices.csv").unlink()
    with make_engine(net, state=state) as engine:
        engine.enqueue("ticks", [("b", 1)])
        engine.drain()
        assert found(engine.dequeue("all")) == IN_ORDER, "each row once"
        assert found(engine.dequeue("priced")) == [("b", 1, "b", 2.0), ("b", 1, "b", 2.5)]


@pytest.mark.parametrize(
    ("store", "schema", "code"),
    [
        ("csv:none.csv", SCHEMA, "NO_DATA_SET: .*there is no file or directory"),
        ("parquet:none/", SCHEMA, "NO_DATA_SET"),
        ("sqlite:///none.db#prices", SCHEMA, "NO_DATA_SET: .*there is no database"),
        ("sqlite:///shop.db#nothing", SCHEMA, "NO_DATA_SET: .*there is no table nothing"),
        (
            "sqlite:///shop.db#the prices",
            "sym string, cost double",
            "BAD_DATA_SET.* no column cost",
        ),
        ("sqlite:///shop.db#the prices", "sym int, price double", "BAD_DATA_SET"),
        ("csv:prices.csv", "sym string, cost double", "BAD_DATA_SET.*missing cost"),
        ("csv:prices.csv", "sym int, price double", "BAD_DATA_SET.*line 2"),
        ("sqlite:///shop.db", SCHEMA, "BAD_STORE"),
        ("csv:", SCHEMA, "BAD_STORE"),
        ("csv:${NO_SUCH_VARIABLE}", SCHEMA, "UNKNOWN_VARIABLE"),
    ],
)
def test_what_cannot_be_read_is_said_at_the_start(
    tmp_path: Path, store: str, schema: str, code: str
) -> None:
    written(tmp_path, "csv")
    written(tmp_path, "sqlite")
    net = network(tmp_path, store, schema)
    net.output("all", "prices")
    with pytest.raises(au.AuroralError, match=code), make_engine(net):
        pass


def test_a_password_is_in_no_message_and_in_no_state(tmp_path: Path) -> None:
    url = "postgresql://me:s3cret@127.0.0.1:1/db?sslmode=disable#prices"
    net = network(tmp_path, url)
    net.output("all", "prices")
    with (
        pytest.raises(au.RunError, match="NO_DATA_SET") as error,
        make_engine(net, state=tmp_path / "state"),
    ):
        pass
    assert "s3cret" not in str(error.value)
    for path in (tmp_path / "state").rglob("*"):
        assert path.is_dir() or b"s3cret" not in path.read_bytes(), path


def test_a_key_without_an_order_is_refused(tmp_path: Path) -> None:
    net = network(tmp_path, "csv:x.csv", "sym array<int>, price double")
    with pytest.raises(au.NetworkError, match=r"BAD_PARAMETER: .*a key is a number.* array<int>"):
        net.check()


def test_two_data_sets_are_pushed_and_looked_up(tmp_path: Path) -> None:
    (tmp_path / "left.csv").write_text("a\n2\n1\n")
    (tmp_path / "right.csv").write_text("b,t\n1,x\n3,y\n2,z\n")
    net = au.Network("two", directory=tmp_path)
    left = net.connection_point("one", store="csv:left.csv", schema="a int", key="a")
    right = net.connection_point("two", store="csv:right.csv", schema="b int, t string", key="b")
    net.output("o", left.join(right, "left.a = right.b"))
    with make_engine(net) as engine:
        engine.drain()
        assert found(engine.dequeue("o")) == [(1, 1, "x"), (2, 2, "z")]


def test_explain_says_how_and_why(tmp_path: Path) -> None:
    net = network(tmp_path, written(tmp_path, "csv"))
    net.output("cheap", net.box("filter", "f", input="prices", where="sym = 'a'"))
    net.output(
        "priced", net.box("join", "j", inputs=["ticks", "prices"], on="left.sym = right.sym")
    )
    net.output("near", net.box("join", "n", inputs=["ticks", "prices"], on="right.price > 2"))
    resolved = with_data_sets(net)
    sets = StoredDataSets(resolved, tmp_path, sync=False)
    text = "\n".join(sets.explained(resolved.check(), 500_000))
    assert "data set prices: 5 rows with 3 values of sym in csv:prices.csv" in text
    assert "pushed as a stream in order of sym: a lookup would read" in text
    assert "with trains of 1,000 tuples j reads all of it: 3 keys of about 3 are sought" in text
    assert "n reads all of it for each train: it does not say that sym equals something" in text


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_probing_gives_the_rows_that_a_join_needs_in_order(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["int", "string", "double", "decimal"]))
    values: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
        "int": (pa.int32(), st.integers(0, 40)),
        "string": (pa.string(), st.text("ab", max_size=4)),
        "double": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf])),
        "decimal": (pa.decimal128(5, 1), st.integers(0, 99).map(lambda n: Decimal(n) / 10)),
    }
    type, strategy = values[kind]
    keys = data.draw(st.lists(st.none() | strategy, max_size=40))
    probes = data.draw(st.lists(st.none() | strategy, max_size=6))
    table = pa.table({"f0": pa.array(keys, type), "f1": pa.array(range(len(keys)), pa.int64())})
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patched:
        patched.setattr("auroral.history.access.PIECE_BYTES", 0)
        patched.setattr("auroral.history.access.SORT_FACTOR", 1.0)
        path = Path(place, "t.parquet")
        size = data.draw(st.integers(1, 9))
        parts = [table.slice(at, size) for at in range(0, len(keys), size)]
        spill = Path(place, "spill")
        write_sorted(
            path, "f0", table.schema, parts, sync=False, spill=spill, sorted_rows=7, group_rows=3
        )
        assert not spill.exists()
        everything = pa.concat_tables(
            [table.schema.empty_table(), *SortedDataSet(path, "f0").rows(None, 5)]
        )
        ordered = sorted(range(len(keys)), key=lambda n: _sortable(keys[n]))
        assert everything["f1"].to_pylist() == ordered
        probed = pa.array(probes, pa.int64() if kind == "int" else type)
        rows = probed_rows(str(path), {"f0": pa.chunked_array([probed])})
        sought = {_sortable(probe) for probe in probes if probe is not None}
        needed = [n for n in ordered if _sortable(keys[n]) in sought and keys[n] is not None]
        got = rows["f1"].to_pylist()
        assert [n for n in got if n in set(needed)] == needed
        assert len(set(got)) == len(got)
        stored._cached_directory.cache_clear()


def _sortable(value: Any) -> tuple[int, Any]:
    if value is None:
        return (2, 0)
    return (1, 0) if value != value else (0, value)


def test_a_large_table_is_looked_up_and_a_small_one_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"f0": np.arange(500_000), "f1": np.arange(500_000)})
    write_sorted(path, "f0", table.schema, [table], sync=False, spill=tmp_path / "spill")
    few = probed_rows(str(path), {"f0": pa.chunked_array([[7, 8, None]])})
    assert few.num_rows == 8_192
    many = probed_rows(str(path), {"f0": pa.chunked_array([np.arange(0, 500_000, 1_000)])})
    assert many.num_rows == 500_000
    assert probed_rows(str(path), {"f1": pa.chunked_array([[7]])}).num_rows == 500_000


@pytest.mark.spark
def test_spark_reads_data_sets_too(make_engine: Any, tmp_path: Path) -> None:
    net = network(tmp_path, written(tmp_path, "parquet"))
    net.output("dear", net.box("filter", "d", input="prices", where="price >= 2.5"))
    net.output(
        "priced", net.box("join", "j", inputs=["ticks", "prices"], on="left.sym = right.sym")
    )
    with make_engine(net) as engine:
        engine.enqueue("ticks", [("b", 1), ("a", 4)])
        engine.drain()
        assert found(engine.dequeue("dear")) == [("b", 2.5), ("c", 3.0), (None, 9.0)]
        assert len(found(engine.dequeue("priced"))) == 3
