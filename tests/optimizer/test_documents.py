"""The page about the optimiser has the table of the code."""

from __future__ import annotations

from pathlib import Path

from auroral.optimizer import COMMUTING, NOT_COMMUTING

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "optimizer.md"


def test_the_page_has_every_pair_with_its_reason() -> None:
    lines = PAGE.read_text().splitlines()
    for pair in COMMUTING:
        assert f"| {pair.before} | {pair.if_} | {pair.because} |" in lines
    for left_out, reason in NOT_COMMUTING.items():
        assert f"| {left_out} | {reason} |" in lines
