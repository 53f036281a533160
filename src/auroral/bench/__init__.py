"""Experiments: each prints ratios measured in one run, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from auroral.bench.report import Report
from auroral.errors import UsageError


class Benchmark(Protocol):
    """An experiment by name; `plots` is a directory for charts, `only` names parts of it."""

    def __call__(
        self, *, quick: bool = False, plots: Path | None = None, only: Sequence[str] = ()
    ) -> Report: ...


def _micro(*, quick: bool = False, plots: Path | None = None, only: Sequence[str] = ()) -> Report:
    from auroral.bench.micro import micro

    if plots is not None or only:
        raise UsageError("BAD_OPTION", "the benchmark micro has no plots and no parts")
    return micro(quick=quick)


def _oop(*, quick: bool = False, plots: Path | None = None, only: Sequence[str] = ()) -> Report:
    from auroral.bench.oop import oop

    return oop(quick=quick, plots=plots, only=only)


BENCHMARKS: dict[str, Benchmark] = {"micro": _micro, "oop": _oop}
