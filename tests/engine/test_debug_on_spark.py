"""Stepping and breakpoints on Spark give what they give without it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

import auroral as au
from tests.engine.test_debug import ROWS, code, network, rows


@pytest.mark.spark
def test_stepping_stopping_and_looking(
    make_engine: Callable[..., AbstractContextManager[au.Engine]],
) -> None:
    with make_engine(network()) as engine:
        engine.sample("across.rest")
        engine.pause()
        engine.enqueue("reports", ROWS)
        trace = engine.step("tuple")
        assert [entry["box"] for entry in trace] == ["across", "doubled", "crowd", "enough"]
        assert trace[1]["out"] == {"doubled": [{"sid": 1, "double": 70}]}
        engine.set_breakpoint("doubled", "double > 100")
        engine.resume()
        assert code(engine.drain) == "PAUSED"
        assert engine.debug_state()["hit"]["tuple"] == {"sid": 4, "double": 120}
        assert rows(engine, "all") == [(1, 70), (2, 80)]
        engine.resume()
        engine.drain()
        assert rows(engine, "all") == [(4, 120)]
        assert rows(engine, "alerts") == [(0, 2)]
        assert engine.sample("across.rest")["sid"].to_pylist() == [3]
