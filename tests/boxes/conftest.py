"""These tests never ask Spark."""

from __future__ import annotations

import pytest

import auroral  # noqa: F401  (sets what the fixture unsets)
from auroral.network import check


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let functions outside the catalogue be unknown."""
    monkeypatch.setattr(check, "fallback_resolver", None)
