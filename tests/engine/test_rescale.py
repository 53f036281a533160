"""State is split into other numbers of buckets between runs, and results stay the same."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import auroral.spark.running.stateful_runner
from auroral import Network, Order, Window
from auroral.cli.main import app
from auroral.engine.topology.rescale import rescale, state_keys
from auroral.errors import StateError, UsageError
from auroral.ids import StateLogId
from auroral.kernels.grouping import buckets_of
from auroral.storage import Store
from auroral.testing import Collector
from tests.conformance import sparkless
from tests.conformance.events import TABLE_ROWS, Events
from tests.conformance.networks import Batch
from tests.conformance.running import Crash, expected, plain
from tests.conformance.stateful import stateful_network
from tests.conformance.test_stateful import needs_spark

KEYED = ("aggregate", "bsort", "dedup", "join", "latch", "stateful_map", "wait_for")


class Interrupted:
    """A network whose input comes in parts; each part is a run of its own."""

    def __init__(self, net: Network, batches: list[Batch]):
        self.net, self.batches = net, batches
        self.tables = {"refs": TABLE_ROWS} if "refs" in net.tables else {}
        self.sinks = {name: Collector() for name in net.outputs}

    def run(self, state: Path, first: int, last: int, **options: Any) -> None:
        """Process some of the batches; the last of all end the input."""
        given = {"state": state, "clock": "arrival", "tables": self.tables, "train": 5, **options}
        with sparkless.make_engine(self.net, bind=list(self.sinks.items()), **given) as engine:
            for batch in self.batches[first:last]:
                engine.enqueue(batch.stream, list(batch.rows))
            engine.drain()
            if last == len(self.batches):
                engine.finish()

    def compare(self) -> None:
        reference = expected(self.net, self.batches, self.tables)
        reference.end()
        for name, sink in self.sinks.items():
            assert plain(sink.rows) == plain(reference.collected(name)), name


def drawn(seed: str, kinds: tuple[str, ...] = KEYED) -> Interrupted:
    """A random network over random events."""
    rng = Random(seed)
    nets = (stateful_network(rng, 4, kinds) for _ in count())
    net = next(net for net in nets if not any(map(needs_spark, net.boxes.values())))
    return Interrupted(net, Events(rng, net).script(30, drains=0.1))


@pytest.fixture(autouse=True)
def _in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auroral.spark.running.stateful_runner, "PARALLEL_ROWS", 0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KEYED)
def test_a_network_that_was_rescaled_gives_what_the_reference_gives(
    kind: str, seed: int, tmp_path: Path
) -> None:
    run = drawn(f"rescale {kind} {seed}", (kind,))
    third = len(run.batches) // 3
    run.run(tmp_path, 0, third, buckets=2)
    assert rescale(tmp_path, 8).after == 8
    run.run(tmp_path, third, 2 * third, buckets=8)
    assert rescale(tmp_path, 1).before == 8
    run.run(tmp_path, 2 * third, len(run.batches))
    run.compare()


def test_every_row_is_in_the_bucket_of_its_key(tmp_path: Path) -> None:
    """Of boxes that hold something at the end; at least one state table must have rows."""
    rows = 0
    for kind in KEYED:
        state = tmp_path / kind
        run = drawn(f"places {kind}", (kind,))
        run.run(state, 0, len(run.batches) // 2, buckets=2)
        rescale(state, 5)
        rows += _require_places(state)
    assert rows


def _require_places(state: Path) -> int:
    store, rows = Store(state), 0
    try:
        keys = state_keys(store)
        for log in store.names()[0]:
            id = StateLogId.parse(log)
            if id is None or id.box is None:
                continue
            of_box = keys[id.box]
            if of_box is None:
                assert id.bucket == 0
                continue
            for segment in store.segments(log):
                table = store.table(segment)
                columns = [table[name] for name in of_box[id.table]]
                places = buckets_of(columns, table.num_rows, store.buckets)
                assert set(places.tolist()) <= {id.bucket}
                rows += table.num_rows
    finally:
        store.close()
    return rows


def dying(at: int) -> Callable[[str], None]:
    passed = count()

    def fault(point: str) -> None:
        if next(passed) == at:
            raise Crash(point)

    return fault


def test_a_rescale_that_is_killed_leaves_the_old_number_or_the_new(tmp_path: Path) -> None:
    run = drawn("killed 1")
    half = len(run.batches) // 2
    run.run(tmp_path / "state", 0, half, buckets=2)
    seen: list[int] = []
    for at in count():
        state, left = tmp_path / f"state-{at}", copy.deepcopy(run)
        shutil.copytree(tmp_path / "state", state)
        try:
            rescale(state, 3, fault=dying(at))
            break
        except Crash:
            store = Store(state)
            seen.append(store.buckets)
            store.close()
            left.run(state, half, len(run.batches), buckets=seen[-1])
            left.compare()
    assert seen == sorted(seen)
    assert {2, 3} == set(seen)


def counting() -> Network:
    net = Network("counting")
    s = net.stream("s", "k int, t int")
    net.output("o", s.aggregate(Order("t", slack=1, by=("k",)), Window(size=10), n="count(*)"))
    return net


def test_another_number_of_buckets_is_refused_and_rescale_named(tmp_path: Path) -> None:
    with sparkless.make_engine(counting(), state=tmp_path, buckets=4) as engine:
        engine.enqueue("s", [(1, 1)])
    with pytest.raises(StateError, match=r"4 buckets, not 2.*auroral rescale") as refused:
        sparkless.make_engine(counting(), state=tmp_path, buckets=2).__enter__()
    assert refused.value.code == "OTHER_BUCKETS"
    with sparkless.make_engine(counting(), state=tmp_path) as engine:
        assert engine._store.buckets == 4


def test_the_network_file_may_say_how_many_buckets(tmp_path: Path) -> None:
    document = {**counting().document(), "engine": {"buckets": 16}}
    with sparkless.make_engine(Network.parse(document), state=tmp_path) as engine:
        assert engine._store.buckets == 16


def test_the_default_is_twice_the_cores_of_the_master(tmp_path: Path) -> None:
    with sparkless.make_engine(counting(), state=tmp_path) as engine:
        assert engine._store.buckets == 4


@pytest.mark.parametrize("buckets", [0, 5000, "four"])
def test_a_number_that_is_none_is_refused(buckets: Any) -> None:
    with pytest.raises(UsageError, match="buckets are 1 to 4096"):
        sparkless.make_engine(counting(), buckets=buckets).__enter__()


def test_the_command_rescales(tmp_path: Path) -> None:
    with sparkless.make_engine(counting(), state=tmp_path, buckets=2) as engine:
        engine.enqueue("s", pa.table({"k": pa.array(range(50), pa.int32()), "t": [1] * 50}))
        engine.drain()
    told = CliRunner().invoke(app, ["rescale", str(tmp_path), "8"])
    assert told.exit_code == 0
    assert "2 buckets are 8 now (100 rows in 2 state tables)" in told.output
    again = CliRunner().invoke(app, ["rescale", str(tmp_path), "8"])
    assert "8 buckets already" in again.output


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    with sparkless.make_engine(counting(), state=tmp_path), pytest.raises(StateError) as refused:
        rescale(tmp_path, 8)
    assert refused.value.code == "STATE_IN_USE"


def test_a_directory_without_state_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        rescale(tmp_path / "none", 8)
    assert refused.value.code == "NO_STATE"
    assert not (tmp_path / "none").exists()


def test_the_state_of_shared_queries_is_refused_by_name(tmp_path: Path) -> None:
    net = Network("shared")
    net.stream("s", "k int, t int")
    net.stream("r", "k int, t int")
    net.query("q", "SELECT s.t FROM s [ROWS 9], r [ROWS 9] WHERE s.k = r.k")
    with sparkless.make_engine(net, state=tmp_path, buckets=2) as engine:
        engine.enqueue("s", [(1, 1), (2, 2)])
        engine.drain()
    with pytest.raises(StateError, match="stem:s") as refused:
        rescale(tmp_path, 4)
    assert refused.value.code == "CANNOT_RESCALE"
