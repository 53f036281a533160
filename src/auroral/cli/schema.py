"""`auroral schema`: the JSON Schema of the network file."""

from __future__ import annotations

import json

import typer

from auroral.network.json_schema import network_schema


def schema() -> None:
    """Print the JSON Schema of the network file."""
    typer.echo(json.dumps(network_schema(), indent=2))
