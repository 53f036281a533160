"""Tables that commands print or write to a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import typer

from auroral.io.open import open_sink
from auroral.io.sinks.jsonl import json_lines
from auroral.io.sinks.sink import Delivery, Sink
from auroral.network.queries import parameter_types


def write_tables(tables: Iterator[pa.Table], name: str, output: Path | None) -> int:
    """Write tables to a file, or as JSON lines to standard output; returns the number of rows.

    Ctrl-C ends it, and what came until then is written.
    """
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
    return rows
