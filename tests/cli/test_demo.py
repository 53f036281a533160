"""The demo: what it prints, and that a taken port or a visitor's change does no harm."""

from __future__ import annotations

import re
import socket

import pytest

from auroral.demo import HOST, NETWORK, demo
from auroral.engine.runtime.in_process import InProcessExecutor


def test_without_a_terminal_it_ends_by_itself_with_a_summary(
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = NETWORK.read_bytes()
    demo(1.0, port=0, executor=InProcessExecutor())
    told = capfd.readouterr()
    assert re.fullmatch(r"studio: http://127\.0\.0\.1:\d+/#token=[\w-]{20,}\n", told.out)
    assert re.search(r"^[\d,]+ tuples in 1 s, [\d,]+ steps", told.err, re.MULTILINE)
    for name in ("alerts", "means", "quality"):
        assert re.search(rf"^  output {name}: [\d,]+ results, utility \d\.\d\d$", told.err, re.M)
    assert "is taken" not in told.err
    assert NETWORK.read_bytes() == before


def test_a_taken_port_is_told_and_another_is_used(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server((HOST, 0)) as other:
        taken = other.getsockname()[1]
        demo(0.0, port=taken, executor=InProcessExecutor())
    told = capfd.readouterr()
    assert f"port {taken} is taken, so the demo takes another" in told.err
    assert f":{taken}/" not in told.out
