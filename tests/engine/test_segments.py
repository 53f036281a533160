"""Segments under a running engine: damage is named, bounds are known, large results are Spark's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import auroral as au

if TYPE_CHECKING:
    from tests.conftest import MakeEngine

pytestmark = pytest.mark.spark


def network() -> au.Network:
    net = au.Network("segments")
    stream = net.stream("s", "t bigint, v double", progress=au.Delayed("t", 3))
    net.output("o", stream.filter("v >= 0", name="f"))
    return net


def table(count: int) -> pa.Table:
    return pa.table({"t": range(count), "v": [float(i) for i in range(count)]})


@pytest.mark.parametrize("damage", ["flip", "shorten", "remove"])
def test_a_segment_damaged_before_its_step_is_named(
    make_engine: MakeEngine, tmp_path: Path, damage: str
) -> None:
    with make_engine(network(), state=tmp_path) as engine:
        engine.enqueue("s", table(30_000))
        (segment,) = engine._store.segments("s")
        path = engine._store.path_of(segment)
        data = bytearray(path.read_bytes())
        if damage == "flip":
            data[len(data) // 2] ^= 4
            path.write_bytes(bytes(data))
        elif damage == "shorten":
            path.write_bytes(bytes(data[:-5]))
        else:
            path.unlink()
        with pytest.raises(au.StateError) as caught:
            engine.drain()
        assert caught.value.code == "SEGMENT_DAMAGED"
        assert path.name in str(caught.value)
        with pytest.raises(au.StateError):
            engine.drain()
        data[len(data) // 2] ^= 4 if damage == "flip" else 0
        path.write_bytes(bytes(data))
    with make_engine(network(), state=tmp_path) as engine:
        assert engine.stats()["outputs"]["o"]["waiting"] == 0, "nothing was skipped"
        engine.drain()
        assert engine.dequeue("o").num_rows == 30_000


def test_segments_know_the_bounds_of_what_progresses(make_engine: MakeEngine) -> None:
    with make_engine(network()) as engine:
        engine.enqueue("s", table(25_000))
        assert [s.bounds for s in engine._store.segments("s")] == [{"t": (0, 24_999)}]
        engine.drain()
        assert [s.bounds for s in engine._store.segments("f")] == [{"t": (0, 24_999)}]


@pytest.mark.parametrize("driver_bytes", [0, 1 << 30])
def test_large_results_are_written_by_spark(make_engine: MakeEngine, driver_bytes: int) -> None:
    with make_engine(network(), driver_bytes=driver_bytes) as engine:
        for _ in range(2):
            engine.enqueue("s", table(150_000))
            engine.drain()
        out = engine.dequeue("o")
        assert out.equals(pa.concat_tables([table(150_000)] * 2).cast(out.schema))
        assert engine.stats()["arcs"]["f"]["tuples"] == 300_000
        assert engine.stats()["arcs"]["f"]["progress"] == {"t": 149_996}
