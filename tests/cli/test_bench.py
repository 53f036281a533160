"""Benchmarks are found in a checkout, and missed elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from auroral import UsageError
from auroral.cli.bench import find_benchmarks


def test_a_checkout_has_benchmarks() -> None:
    assert {"micro", "oop", "cacq", "independent", "history"} <= set(find_benchmarks())


def test_an_installed_package_says_where_they_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="NO_BENCHMARKS: benchmarks are part of a checkout"):
        find_benchmarks(tmp_path / "site-packages" / "auroral")
