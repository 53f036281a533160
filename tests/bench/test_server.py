"""The benchmark of the server runs, and tuples enter at least at a fraction of its bar."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.lab import Lab
from benchmarks.report import Report
from benchmarks.server import experiments

LEAST_PER_S = 200_000
"""By Flight: a fifth of the bar, because the machines of tests are small and have other work."""
ATTEMPTS = 3


@pytest.mark.spark
def test_tuples_enter_by_flight_fast_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue, rates = experiments._enqueue, list[float]()

    def best(place: Any, tuples: int) -> float:
        seconds = min(enqueue(place, tuples) for _ in range(ATTEMPTS))
        rates.append(tuples / seconds)
        return float(seconds)

    monkeypatch.setattr(experiments, "_enqueue", best)
    monkeypatch.setattr(experiments, "_NDJSON_TUPLES", 200_000)
    report = Report("server")
    experiments.feeds(report, Lab(cast(Any, None), True, tmp_path))
    enqueued, latency = report.data()["sections"]
    assert [row["way"] for row in enqueued["rows"]] == [
        "Flight, 64 bytes, Arrow",
        "HTTP, NDJSON",
    ]
    assert all(row["tuples_per_s"] > 0 for row in enqueued["rows"])
    assert latency["rows"][0]["results"] > 0
    assert [bar.limit for bar in report.bars][:2] == [1_000_000, 50_000]
    assert max(rates) >= LEAST_PER_S
