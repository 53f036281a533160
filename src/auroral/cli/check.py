"""`auroral check`: is the network valid, and what flows on its arcs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auroral.catalog import read_catalog
from auroral.engine.inspect.cautions import infeasible_outputs
from auroral.engine.topology.superboxes import require_executable, require_jars, running_outputs
from auroral.ids import ArcId
from auroral.io.open import connectors_needed
from auroral.network.network import Network
from auroral.scheduling.flow_models import flow_model

NetworkFile = Annotated[Path, typer.Argument(metavar="FILE", help="the network, YAML or JSON")]

Imports = Annotated[
    bool,
    typer.Option("--import", help="import the modules of Python functions, which runs their code"),
]


State = Annotated[
    Path | None,
    typer.Option("--state", metavar="DIR", help="judge latency graphs by what was measured there"),
]


def check(file: NetworkFile, imports: Imports = False, state: State = None) -> None:
    """Print every arc with its schema; exit 2 and the error if `run` would refuse the network."""
    network = Network.load(file, imports=imports)
    checked = network.check()
    width = max((len(name) for name in checked.arcs), default=0)
    for name, arc in checked.arcs.items():
        typer.echo(f"{name:<{width}}  {arc.schema}")
    for name, instance in network.instances.items():
        own = {
            a: of for a, of in checked.network.aliases.items() if ArcId.parse(a).producer == name
        }
        arcs = ", ".join(f"{arc} = {of}" for arc, of in own.items())
        typer.echo(f"superbox {name} ({instance.box}): {arcs}")
    for name, output in network.outputs.items():
        typer.echo(f"output {name} ← {output.from_}")
    for name in network.queries:
        typer.echo(f"query {name}  {checked.queries[name]}")
    for note in (*network.unverified(), *connectors_needed(network)):
        typer.echo(f"note: {note}", err=True)
    costs = {} if state is None else read_catalog(state).costs
    for caution in (
        *checked.warnings,
        *infeasible_outputs(flow_model(checked, costs, running_outputs(checked)), costs),
    ):
        typer.echo(f"warning: {caution}", err=True)
    require_executable(checked.network)
    require_jars(network)
