"""Experiments: each prints ratios measured in one run, as a table and as JSON."""

from __future__ import annotations

from typing import Protocol

from auroral.bench.report import Report


class Benchmark(Protocol):
    """An experiment by name."""

    def __call__(self, *, quick: bool = False) -> Report: ...


def _micro(*, quick: bool = False) -> Report:
    from auroral.bench.micro import micro

    return micro(quick=quick)


BENCHMARKS: dict[str, Benchmark] = {"micro": _micro}
