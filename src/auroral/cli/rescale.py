"""`auroral rescale`: split the state of a network into another number of buckets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auroral.engine.topology.rescale import rescale as rescale_state


def rescale(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="the state directory")],
    buckets: Annotated[int, typer.Argument(metavar="N", help="how many buckets, 1 to 4096")],
) -> None:
    """Split the state of every keyed box into N buckets; the network must not be running."""
    done = rescale_state(state, buckets)
    if done.before == done.after:
        typer.echo(f"{state} has {done.after} buckets already", err=True)
        return
    typer.echo(
        f"{state}: {done.before} buckets are {done.after} now"
        f" ({done.rows:,} rows in {done.tables} state tables)",
        err=True,
    )
