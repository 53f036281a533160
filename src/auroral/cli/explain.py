"""`auroral explain`: superboxes, materialised arcs, and the Spark plan of each."""

from __future__ import annotations

from typing import Annotated

import typer

from auroral.cli.check import Imports, NetworkFile
from auroral.engine.inspect.explanation import explained
from auroral.network.network import Network


def explain(
    file: NetworkFile,
    master: Annotated[str, typer.Option(help="Spark master")] = "local[*]",
    imports: Imports = False,
) -> None:
    """Show what runs together, what is kept, and how Spark does it."""
    typer.echo(explained(Network.load(file, imports=imports), master))
