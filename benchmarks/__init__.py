"""Experiments: each prints ratios measured in one run, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from auroral.errors import UsageError
from benchmarks.report import Report


class Benchmark(Protocol):
    """An experiment by name; `plots` is a directory for charts, `only` names parts of it.

    `peers` are interpreters that have other systems to compare with.
    """

    def __call__(
        self,
        *,
        quick: bool = False,
        plots: Path | None = None,
        only: Sequence[str] = (),
        peers: Sequence[Path] = (),
    ) -> Report: ...


def _micro(
    *,
    quick: bool = False,
    plots: Path | None = None,
    only: Sequence[str] = (),
    peers: Sequence[Path] = (),
) -> Report:
    from benchmarks.micro import micro

    _require_no_peers("micro", peers)
    if plots is not None or only:
        raise UsageError("BAD_OPTION", "the benchmark micro has no plots and no parts")
    return micro(quick=quick)


def _oop(
    *,
    quick: bool = False,
    plots: Path | None = None,
    only: Sequence[str] = (),
    peers: Sequence[Path] = (),
) -> Report:
    from benchmarks.oop.experiments import oop

    _require_no_peers("oop", peers)
    return oop(quick=quick, plots=plots, only=only)


def _cacq(
    *,
    quick: bool = False,
    plots: Path | None = None,
    only: Sequence[str] = (),
    peers: Sequence[Path] = (),
) -> Report:
    from benchmarks.cacq.experiments import cacq

    return cacq(quick=quick, plots=plots, only=only, peers=peers)


def _independent(
    *,
    quick: bool = False,
    plots: Path | None = None,
    only: Sequence[str] = (),
    peers: Sequence[Path] = (),
) -> Report:
    from benchmarks.independent import independent

    _require_no_peers("independent", peers)
    if plots is not None or only:
        raise UsageError("BAD_OPTION", "the benchmark independent has no plots and no parts")
    return independent(quick=quick)


def _history(
    *,
    quick: bool = False,
    plots: Path | None = None,
    only: Sequence[str] = (),
    peers: Sequence[Path] = (),
) -> Report:
    from benchmarks.history import history

    _require_no_peers("history", peers)
    if plots is not None:
        raise UsageError("BAD_OPTION", "the benchmark history has no plots")
    return history(quick=quick, only=only)


def _qos(
    *,
    quick: bool = False,
    plots: Path | None = None,
    only: Sequence[str] = (),
    peers: Sequence[Path] = (),
) -> Report:
    from benchmarks.qos.experiments import qos

    _require_no_peers("qos", peers)
    return qos(quick=quick, plots=plots, only=only)


def _server(
    *,
    quick: bool = False,
    plots: Path | None = None,
    only: Sequence[str] = (),
    peers: Sequence[Path] = (),
) -> Report:
    from benchmarks.server.experiments import server

    _require_no_peers("server", peers)
    if plots is not None:
        raise UsageError("BAD_OPTION", "the benchmark server has no plots")
    return server(quick=quick, only=only)


def _require_no_peers(name: str, peers: Sequence[Path]) -> None:
    if peers:
        raise UsageError("BAD_OPTION", f"the benchmark {name} has no peers")


BENCHMARKS: dict[str, Benchmark] = {
    "micro": _micro,
    "oop": _oop,
    "cacq": _cacq,
    "independent": _independent,
    "history": _history,
    "qos": _qos,
    "server": _server,
}
