"""`auroral explain`: superboxes, materialised arcs, and the Spark plan of each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auroral.catalog import read_catalog
from auroral.cli.check import Imports, NetworkFile
from auroral.engine.inspect.box_order import EarlierRun
from auroral.engine.inspect.explanation import explained
from auroral.network.network import Network


def explain(
    file: NetworkFile,
    master: Annotated[str, typer.Option(help="Spark master")] = "local[*]",
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="order boxes by the costs measured in a state directory"),
    ] = None,
    imports: Imports = False,
) -> None:
    """Show what runs together, what is kept, and how Spark does it."""
    earlier = None if state is None else EarlierRun.of(read_catalog(state))
    typer.echo(explained(Network.load(file, imports=imports), master, earlier))
