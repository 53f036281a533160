"""Tables that commands print or write to a file."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pyarrow as pa
import typer

from auroral.io.open import open_sink
from auroral.io.sinks.jsonl import json_lines
from auroral.io.sinks.sink import Delivery, Sink
from auroral.network.queries import parameter_types
from auroral.network.types import Schema


class TableWriter:
    """Writes tables to a file, or as JSON lines to standard output.

    A suffix that stands for no format is refused at once. The first table, which may be empty,
    opens the file. With `taken` nobody can ask for the rows again: those that cannot be written
    go to standard output.
    """

    def __init__(self, name: str, output: Path | None, *, taken: bool = False):
        self.rows = 0
        """How many rows were written."""
        self._name = name
        self._output = None if output is None else str(output)
        self._taken = taken
        self._sink: Sink | None = None
        if self._output is not None:
            open_sink(name, self._output, Schema(()))

    def write(self, table: pa.Table) -> None:
        """Write the rows of a table."""
        if self._output is None:
            _print(table)
        else:
            if self._sink is None:
                self._sink = open_sink(self._name, self._output, parameter_types(table))
                self._sink.open(None)
            if table.num_rows:
                self._write(self._sink, table)
        self.rows += table.num_rows

    def _write(self, sink: Sink, table: pa.Table) -> None:
        at = self.rows, b""
        try:
            sink.write(Delivery(self._name, table, at, at))
        except Exception:
            if self._taken:
                count = f"{table.num_rows:,} rows"
                typer.echo(f"the {count} that cannot be written are on standard output", err=True)
                _print(table)
            raise

    def close(self) -> None:
        """Close the file."""
        if self._sink is not None:
            self._sink.close()


def _print(table: pa.Table) -> None:
    typer.echo(bytes(json_lines(table)).decode(), nl=False)


def write_tables(
    tables: Iterator[pa.Table], name: str, output: Path | None, *, taken: bool = False
) -> int:
    """Write tables to a file or to standard output; returns the number of rows.

    Ctrl-C ends it, and what came until then is written.
    """
    writer = TableWriter(name, output, taken=taken)
    try:
        for table in tables:
            writer.write(table)
    except KeyboardInterrupt:
        pass
    finally:
        writer.close()
        if isinstance(tables, Generator):
            tables.close()  # now, while its server can still be told that nobody wants more
    return writer.rows
