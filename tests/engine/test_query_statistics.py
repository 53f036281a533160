"""How queries are found is chosen from the values that come, and chosen again as they change."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import auroral as au
from auroral.engine import Engine
from tests.conformance import sparkless

MANY = 4_500
ABOVE = "SELECT v FROM S WHERE v > :a"
NARROW = "SELECT v FROM S WHERE v BETWEEN :a AND :b"


def _network() -> au.Network:
    net = au.Network("values")
    net.stream("S", "v double, w int")
    net.query("other", "SELECT w FROM S WHERE w > 5", results="count")
    return net


def _family(text: str, low: float) -> au.Family:
    """Queries for values from `low` on, all with different constants."""
    a = low + np.arange(MANY) / MANY
    return au.Family(
        text, pa.table({"k": range(MANY), "a": a, "b": a + 1e-4}), "k", results="count"
    )


def _feed(engine: Engine, greatest: float, trains: int = 1) -> None:
    for _ in range(trains):
        values = np.linspace(0, greatest, 1_000)
        engine.enqueue("S", pa.table({"v": values, "w": pa.array(range(1_000), pa.int32())}))
        engine.drain()


def _filed(engine: Engine) -> int:
    """How many queries are filed under access predicates."""
    return engine._queries.query_index.parts("S").split()[1]


def test_narrow_ranges_are_filed_before_any_value_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    net = _network()
    net.queries["narrow"] = _family(NARROW, 10)
    with sparkless.make_engine(net) as engine:
        assert _filed(engine) == MANY


def test_selective_queries_are_filed_once_values_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    net = _network()
    net.queries["above"] = _family(ABOVE, 999)
    with sparkless.make_engine(net) as engine:
        assert _filed(engine) == 0
        _feed(engine, 1_000.0)
        assert _filed(engine) == MANY
        _feed(engine, 1_000.0)
        assert sum(engine.matches("above")["matches"].to_pylist()) == 2 * MANY


def test_a_field_that_nobody_asked_for_before_is_sampled_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with sparkless.make_engine(_network()) as engine:
        _feed(engine, 1_000.0, trains=4)
        engine.modify(add={"above": _family(ABOVE, 999)})
        assert _filed(engine) == 0
        _feed(engine, 1_000.0)
        assert _filed(engine) == MANY


def test_very_many_are_compiled_again_if_they_are_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auroral.eddy.parts._CHEAP", MANY // 2)
    net = _network()
    net.queries["above"] = _family(ABOVE, 999)
    with sparkless.make_engine(net) as engine:
        _feed(engine, 1_000.0)
        assert _filed(engine) == MANY


def test_queries_are_bits_again_when_values_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auroral.engine.runtime.eddy_step._SAMPLE_EVERY", 1)
    net = _network()
    net.queries["above"] = _family(ABOVE, 0)
    with sparkless.make_engine(net) as engine:
        _feed(engine, 1e-3)
        assert _filed(engine) > MANY // 2
        _feed(engine, 1_000.0, trains=16)
        assert _filed(engine) == 0
