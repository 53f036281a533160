"""`auroral attach`: ask the history that a network keeps, whether it runs or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from auroral.cli import remote
from auroral.cli.written import write_tables
from auroral.engine.points.attach_socket import ask, is_served
from auroral.engine.points.stored import StoredHistory, opened, stored_network
from auroral.errors import UsageError
from auroral.spark.running.executor import SparkExecutor
from auroral.spark.session.session import start_session, step_session


def attach(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="[STATE] POINT SQL",
            help="the state directory, unless --server is given; a connection point or a view; a"
            " query over its name",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(help="write a .csv, .jsonl or .parquet", show_default="standard output"),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="go on with what flows, until Ctrl-C")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(
            "--network", metavar="FILE", help="the network file, if it has Python functions"
        ),
    ] = None,
    master: Annotated[str, typer.Option(help="Spark master")] = "local[*]",
    server: remote.ServerOption = None,
    token: remote.TokenOption = None,
    token_file: remote.TokenFileOption = None,
    ca: remote.CaOption = None,
) -> None:
    """Print what a query gives over the history that a connection point keeps.

    If the network runs, its process answers; else the history is read from the directory, which
    stays as it is. With --server, the server answers.
    """
    if len(places) == 2:
        point, sql = places
        with remote.connected(server, token, token_file, ca) as client:
            _write(remote.attach_there(client, point, sql, follow), point, output)
        return
    if len(places) != 3 or any((token, token_file, ca)):
        raise UsageError(
            "BAD_OPTION", f"expected STATE POINT SQL, or --server URL POINT SQL, found {places}"
        )
    state, point, sql = Path(places[0]), places[1], places[2]
    if is_served(state):
        _write(ask(state, point, sql, follow=follow), point, output)
        return
    if follow:
        raise UsageError(
            "NOT_RUNNING",
            "--follow needs a network that runs",
            where=str(state),
            hint="start it with auroral run … --state, or leave out --follow",
        )
    with opened(state) as store:
        network = stored_network(store, file)
        executor = SparkExecutor(step_session(start_session(master)))
        _write(StoredHistory(store, network, executor).rows(point, sql), point, output)


def _write(tables: Iterator[pa.Table], name: str, output: Path | None) -> None:
    rows = write_tables(tables, name, output)
    typer.echo(f"{rows:,} rows", err=True)
