"""`auroral bench`: experiments that print ratios measured in one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from auroral.bench import BENCHMARKS
from auroral.errors import UsageError, closest


def bench(
    name: Annotated[str, typer.Argument(metavar="NAME", help=" | ".join(BENCHMARKS))],
    as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="a tenth of the work, rougher")] = False,
    plots: Annotated[
        Path | None,
        typer.Option("--plots", metavar="DIR", help="write charts (PNG) there; needs matplotlib"),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="PART", help="run this part of it; may be repeated"),
    ] = None,
    peers: Annotated[
        list[Path] | None,
        typer.Option(
            "--peers",
            metavar="PYTHON",
            help="an interpreter that has Flink, Bytewax or Pathway (cacq); may be repeated",
        ),
    ] = None,
) -> None:
    """Run a benchmark and print its table."""
    if name not in BENCHMARKS:
        raise UsageError(
            "UNKNOWN_BENCHMARK",
            f"there is no benchmark {name}; there are {', '.join(BENCHMARKS)}",
            hint=closest(name, BENCHMARKS),
        )
    given = {"peers": peers} if peers else {}
    report = BENCHMARKS[name](quick=quick, plots=plots, only=only or (), **given)
    typer.echo(json.dumps(report.data(), indent=2) if as_json else report.text())
