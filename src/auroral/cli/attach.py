"""`auroral attach`: ask the history that a network keeps, whether it runs or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from auroral.engine.points.attach_socket import ask, is_served
from auroral.engine.points.stored import StoredHistory, opened, stored_network
from auroral.errors import UsageError
from auroral.io.open import open_sink
from auroral.io.sinks.jsonl import json_lines
from auroral.io.sinks.sink import Delivery, Sink
from auroral.network.queries import parameter_types
from auroral.spark.running.executor import SparkExecutor
from auroral.spark.session.session import start_session, step_session


def attach(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="the state directory")],
    point: Annotated[str, typer.Argument(metavar="POINT", help="a connection point or a view")],
    sql: Annotated[str, typer.Argument(metavar="SQL", help="a query over the point's name")],
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
) -> None:
    """Print what a query gives over the history that a connection point keeps.

    If the network runs, its process answers; else the history is read from the directory, which
    stays as it is.
    """
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
    sink: Sink | None = None
    rows = 0
    try:
        for table in tables:
            if output is None:
                typer.echo(bytes(json_lines(table)).decode(), nl=False)
            elif sink is None:
                sink = open_sink(name, str(output), parameter_types(table))
                sink.open(None)
            if sink is not None and table.num_rows:
                sink.write(Delivery(name, table, (rows, b""), (rows, b"")))
            rows += table.num_rows
    except KeyboardInterrupt:
        pass
    finally:
        if sink is not None:
            sink.close()
    typer.echo(f"{rows:,} rows", err=True)
