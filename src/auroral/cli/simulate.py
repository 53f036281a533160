"""`auroral simulate`: figures of the papers, or a network file, on a virtual clock."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Annotated

import typer

from auroral.errors import UsageError, closest
from auroral.network.network import Network
from auroral.simulation.arrivals import (
    ArrivalProcess,
    BurstArrivals,
    EvenArrivals,
    PoissonArrivals,
)
from auroral.simulation.figures import FIGURES, FigureScale
from auroral.simulation.networks import network_report
from auroral.simulation.plots import require_plots, save_chart
from auroral.simulation.report import SimulationReport

_QUICK = 0.2


def simulate(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME|FILE", help=f"{' | '.join(FIGURES)} | network | a file"),
    ],
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="the network, after `network`")
    ] = None,
    rates: Annotated[
        list[str] | None,
        typer.Option(
            "--rates",
            metavar="S=N",
            help="tuples per second of streams, by commas; by default those measured in --state",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", metavar="DIR", help="a state directory with measured costs and rates"
        ),
    ] = None,
    duration_s: Annotated[
        float, typer.Option("--for", metavar="SECONDS", help="virtual time of a network")
    ] = 60.0,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", help="steps at the same time")
    ] = None,
    arrivals: Annotated[
        str, typer.Option("--arrivals", metavar="HOW", help="even | poisson | bursts:N")
    ] = "even",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="of all random choices")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="a fifth of the tuples, rougher")] = False,
    plots: Annotated[
        Path | None,
        typer.Option("--plots", metavar="DIR", help="write a chart (PNG) there; needs matplotlib"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
) -> None:
    """Run the scheduler on a virtual clock: a figure of the papers, or a network file."""
    if plots is not None:
        require_plots()
    if seed < 0:
        raise UsageError("BAD_OPTION", f"--seed is a number from 0 on; found {seed}")
    if name in FIGURES:
        if file is not None or rates or state is not None:
            message = f"{name} takes no file, --rates or --state; those belong to `network FILE`"
            raise UsageError("BAD_OPTION", message)
        report = FIGURES[name](FigureScale(seed, _QUICK if quick else 1.0))
    else:
        report = _network(
            _network_file(name, file),
            _rates(rates or []),
            state,
            duration_s * (_QUICK if quick else 1.0),
            workers,
            _process(arrivals),
            seed,
        )
    typer.echo(json.dumps(report.data(), indent=2) if as_json else report.text())
    if plots is not None:
        path = save_chart(report, plots)
        typer.echo(f"chart: {path}" if path else "no chart: nothing to draw", err=True)


def _network(
    file: Path,
    rates: dict[str, float],
    state: Path | None,
    duration_s: float,
    workers: int | None,
    process: ArrivalProcess,
    seed: int,
) -> SimulationReport:
    if not (duration_s > 0 and math.isfinite(duration_s)):
        raise UsageError("BAD_OPTION", f"--for is a number above zero; found {duration_s:g}")
    if workers is not None and workers < 1:
        raise UsageError("BAD_OPTION", f"steps need at least one worker, found {workers}")
    network = Network.load(file)
    declared = network.engine.workers
    usual = (os.cpu_count() or 1) if declared == "auto" else declared
    return network_report(
        network,
        rates,
        state=state,
        duration_s=duration_s,
        workers=workers or usual,
        process=process,
        seed=seed,
    )


def _network_file(name: str, file: Path | None) -> Path:
    if name == "network":
        if file is None:
            raise UsageError("MISSING_OPTION", "`auroral simulate network` needs a network file")
        return file
    if file is None and (Path(name).is_file() or Path(name).suffix in (".yaml", ".yml", ".json")):
        return Path(name)
    raise UsageError(
        "UNKNOWN_SIMULATION",
        f"there is no simulation {name}; there are {', '.join(FIGURES)} and network FILE",
        hint=closest(name, [*FIGURES, "network"]),
    )


def _rates(given: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in (part.strip() for text in given for part in text.split(",")):
        stream, _, number = part.partition("=")
        try:
            rate = float(number)
        except ValueError:
            rate = math.nan
        if not stream or not (rate > 0 and math.isfinite(rate)):
            message = f"--rates takes STREAM=TUPLES_PER_SECOND, as in reports=5000; found {part!r}"
            raise UsageError("BAD_OPTION", message)
        found[stream.strip()] = rate
    return found


def _process(given: str) -> ArrivalProcess:
    kind, _, size = given.partition(":")
    if given == "even":
        return EvenArrivals()
    if given == "poisson":
        return PoissonArrivals()
    if kind == "bursts" and size.isdecimal() and int(size) > 0:
        return BurstArrivals(int(size))
    message = f"--arrivals is even, poisson or bursts:N, as in bursts:100; found {given!r}"
    raise UsageError("BAD_OPTION", message)
