"""Heartbeats on numbers: in which unit they count, and when that cannot be meant."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auroral import Heartbeat, Network, Order, Ordered, Window
from auroral.errors import NetworkError
from auroral.network.types import Type
from auroral.progress.heartbeats import unit_caution
from auroral.progress.values import clock_to_mark
from auroral.reference import Reference
from auroral.reference.progress.marks import _clock
from tests.conformance import sparkless

NOW_S = 1_700_000_000.0
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@pytest.mark.parametrize("unit", UNITS)
def test_in_a_lull_the_mark_advances_in_the_unit_of_the_attribute(unit: str) -> None:
    net = Network("n")
    beat = Heartbeat(lag=5, unit=unit)
    s = net.stream("s", "ts bigint", progress=Ordered("ts", heartbeat=beat))
    s.aggregate(Order("ts"), Window(size=10 * UNITS[unit]), n="count(*)", name="w")
    reference = Reference(net)
    reference.push("s", [int(NOW_S) * UNITS[unit]], at=NOW_S)
    reference._tick(NOW_S + 20)
    assert reference.mark("s", "ts") == int(NOW_S + 15) * UNITS[unit]
    assert reference.collected("w") == [{"ts": int(NOW_S) * UNITS[unit], "n": 1}]
    assert Network.parse(net.document()) == net


@given(
    st.integers(-(10**15), 2 * 10**15),
    st.sampled_from(list(UNITS)),
    st.sampled_from(["int", "bigint", "double", "decimal(10,2)", "date", "timestamp"]),
)
def test_the_reference_counts_alike(us: int, unit: str, kind: str) -> None:
    type = Type.parse(kind)
    assert clock_to_mark(us, type.name, type.scale, unit) == _clock(us, type, unit)


@pytest.mark.parametrize("kind", ["timestamp", "date"])
def test_times_take_no_unit(kind: str) -> None:
    progress = Ordered("ts", heartbeat=Heartbeat(lag=5, unit="ms"))
    with pytest.raises(NetworkError, match=f"ts is {kind}"):
        Network("n").stream("s", f"ts {kind}", progress=progress)


@pytest.mark.parametrize(
    ("value", "unit", "now_s", "said"),
    [
        (1.7e12, "s", NOW_S, "unit: ms"),
        (1.7e15, "s", NOW_S, "unit: us"),
        (1.7e18, "ms", NOW_S, "unit: ns"),
        (1.7e9, "ms", NOW_S, "unit: s"),
        (5, "s", NOW_S, "leave the heartbeat out"),
        (1.7e9, "s", NOW_S, None),
        (1.7e12, "ms", NOW_S, None),
        (5, "s", 7.0, None),
        (1.7e12, "s", 7.0, "unit: ms"),
    ],
)
def test_a_unit_that_cannot_be_is_doubted(
    value: float, unit: str, now_s: float, said: str | None
) -> None:
    found = unit_caution("s", "ts", value, unit, now_s)
    assert (found is None) == (said is None)
    if found is not None and said is not None:
        assert said in found.message
        assert (found.code, found.where) == ("HEARTBEAT_UNIT", "stream s")


def test_the_engine_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: told.append(record.getMessage()))
    monkeypatch.setattr(logging.getLogger("auroral"), "handlers", [handler])
    net = Network("n")
    s = net.stream("s", "ts bigint, free int", progress=Ordered("ts", heartbeat=5))
    net.output("w", s.aggregate(Order("ts"), Window(size=10), n="count(*)", name="w"))
    net.output("v", s.aggregate(Order("free"), Window(size=10), n="count(*)", name="v"))
    rows: list[dict[str, Any]] = [{"ts": 1_700_000_000_000 + n} for n in range(4)]
    with sparkless.make_engine(net, train=1, now_us=lambda: int(NOW_S * 1e6)) as engine:
        engine.enqueue("s", rows)
        engine.drain()
    assert [text[-16:] for text in told if "HEARTBEAT_UNIT" in text] == ["[HEARTBEAT_UNIT]"]
    assert [text.partition(":")[0] for text in told if "NEVER_CLOSES" in text] == ["box v"]
