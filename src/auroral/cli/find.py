"""`auroral find`: where in a network a text occurs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from auroral.catalog import read_catalog
from auroral.errors import UsageError
from auroral.network.finding import find_in
from auroral.network.network import Network


def find(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="what to look for, in any case")],
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="the network, YAML or JSON")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(metavar="DIR", help="a state directory, running or not")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Search names, tags, descriptions, fields, SQL and expressions of a network."""
    if (file is None) == (state is None):
        raise UsageError("BAD_OPTION", "give a network file, or a state directory with --state")
    if file is not None:
        found = Network.load(file).find(text)
    else:
        assert state is not None
        found = find_in(read_catalog(state).document(), text)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=2, ensure_ascii=False))
        return
    for one in found:
        typer.echo(str(one))
    if not found:
        typer.echo(f"nothing has {text!r}", err=True)
