"""`auroral bench`: experiments that print ratios measured in one run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from auroral.errors import UsageError, closest


def bench(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="micro | oop | cacq | independent | history | qos | server"
        ),
    ],
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
    """Run a benchmark and print its table; needs a checkout of Auroral."""
    benchmarks = find_benchmarks()
    if name not in benchmarks:
        raise UsageError(
            "UNKNOWN_BENCHMARK",
            f"there is no benchmark {name}; there are {', '.join(benchmarks)}",
            hint=closest(name, benchmarks),
        )
    given = {"peers": peers} if peers else {}
    report = benchmarks[name](quick=quick, plots=plots, only=only or (), **given)
    typer.echo(json.dumps(report.data(), indent=2) if as_json else report.text())


def find_benchmarks(package: Path = Path(__file__).parents[1]) -> Mapping[str, Callable[..., Any]]:
    """The benchmarks of the checkout that a package is part of; the wheel has none."""
    checkout = package.parents[1]
    if not (checkout / "benchmarks" / "__init__.py").is_file():
        raise UsageError(
            "NO_BENCHMARKS",
            "benchmarks are part of a checkout of Auroral, not of the installed package",
            hint="clone the repository and run `make bench` there",
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    found: Mapping[str, Callable[..., Any]] = import_module("benchmarks").BENCHMARKS
    return found
