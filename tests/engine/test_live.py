"""Live input: heartbeats, clocks, growing directories, punctuations in the data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import auroral as au

if TYPE_CHECKING:
    from tests.conftest import MakeEngine

pytestmark = pytest.mark.spark


def test_a_heartbeat_moves_the_mark_of_a_silent_stream(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    net = au.Network("quiet")
    busy = net.stream("busy", "t bigint", progress=au.Ordered("t"))
    silent = net.stream("silent", "t bigint", progress=au.Ordered("t", heartbeat=5))
    net.output("both", busy.union(silent, name="u"))
    now = [100_000_000]
    with make_engine(net, now_us=lambda: now[0], state=tmp_path) as engine:
        engine.enqueue("busy", [(90,), (200,)])
        engine.drain()
        marks = {name: arc["progress"] for name, arc in engine.stats()["streams"].items()}
        assert marks == {"busy": {"t": 200}, "silent": {"t": 95}}
        assert engine.stats()["arcs"]["u"]["progress"] == {"t": 95}, "the union goes on"
        now[0] = 150_000_000
        engine._ingest.tick()
        engine.drain()
        assert engine.stats()["arcs"]["u"]["progress"] == {"t": 145}
    with make_engine(net, now_us=lambda: now[0], state=tmp_path) as engine:
        assert engine.stats()["arcs"]["u"]["progress"] == {"t": 145}, "a restart keeps marks"


def test_with_the_arrival_clock_time_is_what_the_rows_say(make_engine: MakeEngine) -> None:
    net = au.Network("replay")
    net.stream("a", "t bigint", progress=au.Ordered("t", heartbeat=2))
    b = net.stream("b", "t bigint")
    net.output("o", b)
    with make_engine(net, clock="arrival") as engine:
        engine.enqueue("b", [{"t": 1, "_at": 10.0}, {"t": 2, "_at": 30.5}])
        engine.drain()
        assert engine.stats()["streams"]["a"]["progress"] == {"t": 28}


def test_punctuations_in_the_data_move_the_mark_and_are_no_tuples(make_engine: MakeEngine) -> None:
    net = au.Network("punctuated")
    s = net.stream("s", "g string, t bigint", progress=au.Punctuated("t", by=("g",)))
    net.output("o", s.filter("t > 0", name="f"))
    rows = [
        {"g": "x", "t": 5},
        {"g": "x", "_punctuation": 4},
        {"g": "y", "t": 9},
        {"g": "y", "_punctuation": 7},
        {"g": "x", "_punctuation": 3},
    ]
    with make_engine(net) as engine:
        assert engine.enqueue("s", rows) == 2
        engine.drain()
        assert engine.dequeue("o").num_rows == 2
        assert engine.stats()["arcs"]["f"]["progress"] == {"t": {"x": 4, "y": 7}}


def test_a_growing_directory_is_read_as_it_grows(make_engine: MakeEngine, tmp_path: Path) -> None:
    place = tmp_path / "in"
    place.mkdir()
    net = au.Network("growing")
    source = {"format": "csv", "path": f"{place}/"}
    net.output("o", net.stream("s", "n int", source=source).filter("n > 0"))
    seen: list[int] = []
    for number in range(3):
        (place / f"{number}.csv").write_text(f"n\n{number * 10 + 1}\n{number * 10 + 2}\n")
        (place / "_ignored.csv").write_text("nonsense")
        with make_engine(net, state=tmp_path / "state") as engine:
            engine.drain()
            seen += engine.dequeue("o")["n"].to_pylist()
    assert seen == [1, 2, 11, 12, 21, 22]


def test_formats_of_sparks_own_are_read_by_spark(make_engine: MakeEngine, tmp_path: Path) -> None:
    place = tmp_path / "in"
    place.mkdir()
    (place / "a.txt").write_text('{"n": 1}\nnot json\n{"n": 2}\n')
    net = au.Network("connector")
    source = {"format": "text", "path": str(place)}
    net.output("o", net.stream("s", "n int", source=source))
    with make_engine(net) as engine:
        engine.drain()
        assert engine.dequeue("o")["n"].to_pylist() == [1, 2]
        assert engine.stats()["streams"]["s"]["dead"] == 1
    net = au.Network("nonsense")
    net.output("o", net.stream("s", "n int", source={"format": "carrier_pigeon"}))
    with pytest.raises(au.UsageError, match="carrier_pigeon"), make_engine(net):
        pass
