"""Durations as text."""

from __future__ import annotations

import pytest

from auroral import NetworkError
from auroral.progress.durations import parse_duration_us


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("1 us", 1),
        ("250 ms", 250_000),
        ("1s", 1_000_000),
        ("1.5 sec", 1_500_000),
        ("2 Minutes", 120_000_000),
        ("1 h 30 min", 5_400_000_000),
        (" 1 day ", 86_400_000_000),
        ("2 weeks", 1_209_600_000_000),
        ("0 s", 0),
    ],
)
def test_read(text: str, us: int) -> None:
    assert parse_duration_us(text) == us


@pytest.mark.parametrize(
    "text", ["", " ", "5", "s", "5 parsecs", "-5 s", "5 s x", "1e3 s", "5 s, 3"]
)
def test_refused(text: str) -> None:
    with pytest.raises(NetworkError, match="expected a number and a unit") as raised:
        parse_duration_us(text)
    assert raised.value.code == "BAD_DURATION"
